const REGULAR_FILE = 0o100000;
const DIRECTORY = 0o040000;
const SYMBOLIC_LINK = 0o120000;
/** The kernel wants the next archive of an initramfs at a multiple of 4; 512 is what cpio itself pads to. */
const ARCHIVE_ALIGNMENT_BYTES = 512;
const FIELD_ALIGNMENT_BYTES = 4;
const HEADER_BYTES = 110;
const TRAILER_NAME = 'TRAILER!!!';
const MAX_UINT32 = 0xffff_ffff;

export type CpioEntry =
  | { kind: 'file'; path: string; mode: number; content: Uint8Array }
  | { kind: 'directory'; path: string; mode: number }
  | { kind: 'link'; path: string; target: string };

/**
 * Writes an archive in the format that the kernel unpacks as an initramfs ("newc": initramfs buffer format, kernel
 * documentation `driver-api/early-userspace/buffer-format`). All entries belong to root, have time 0 and inodes in
 * order, so equal entries give equal bytes. Missing parent directories are added with mode 0755.
 *
 * @param entries paths are relative or absolute; a leading `/` is dropped; later entries replace earlier ones
 * @throws RangeError for a path that is empty, has an empty, `.` or `..` component or a NUL, and for content of
 *   4 GiB or more
 */
export function cpioArchive(entries: readonly CpioEntry[]): Buffer {
  const parts: Buffer[] = [];
  let inode = 0;
  for (const entry of withParents(entries)) parts.push(...encode(entry, ++inode));
  parts.push(...encodeRecord(TRAILER_NAME, 0, 0, new Uint8Array()));
  const archive = Buffer.concat(parts);
  return Buffer.concat([archive, padding(archive.length, ARCHIVE_ALIGNMENT_BYTES)]);
}

function withParents(entries: readonly CpioEntry[]): Iterable<CpioEntry> {
  const byPath = new Map<string, CpioEntry>();
  for (const entry of entries) {
    const components = componentsOf(entry.path);
    for (let depth = 1; depth < components.length; depth++) {
      const path = components.slice(0, depth).join('/');
      if (!byPath.has(path)) byPath.set(path, { kind: 'directory', path, mode: 0o755 });
    }
    const path = components.join('/');
    byPath.set(path, { ...entry, path });
  }
  return byPath.values();
}

function componentsOf(path: string): string[] {
  const components = path.replace(/^\//, '').split('/');
  for (const component of components) {
    if (component === '' || component === '.' || component === '..' || component.includes('\0')) {
      throw new RangeError(`cannot archive ${JSON.stringify(path)}: expected a path like etc/hosts`);
    }
  }
  return components;
}

function encode(entry: CpioEntry, inode: number): Buffer[] {
  switch (entry.kind) {
    case 'file':
      return encodeRecord(entry.path, inode, REGULAR_FILE | entry.mode, entry.content);
    case 'directory':
      return encodeRecord(entry.path, inode, DIRECTORY | entry.mode, new Uint8Array());
    case 'link':
      return encodeRecord(entry.path, inode, SYMBOLIC_LINK | 0o777, Buffer.from(entry.target));
  }
}

function encodeRecord(path: string, inode: number, mode: number, content: Uint8Array): Buffer[] {
  if (content.length > MAX_UINT32) throw new RangeError(`cannot archive ${path}: 4 GiB or more`);
  const name = Buffer.from(`${path}\0`);
  const links = (mode & DIRECTORY) === DIRECTORY ? 2 : 1;
  const fields = [inode, mode, 0, 0, links, 0, content.length, 0, 0, 0, 0, name.length, 0];
  const header = '070701' + fields.map((field) => field.toString(16).padStart(8, '0')).join('');
  return [
    Buffer.from(header),
    name,
    padding(HEADER_BYTES + name.length, FIELD_ALIGNMENT_BYTES),
    Buffer.from(content.buffer, content.byteOffset, content.byteLength),
    padding(content.length, FIELD_ALIGNMENT_BYTES),
  ];
}

function padding(length: number, alignment: number): Buffer {
  return Buffer.alloc((alignment - (length % alignment)) % alignment);
}
