const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
/** Every entry carries the same time and owner, so that equal content gives an equal archive. */
const MODIFIED_AT_S = 0;

/** One member of a tar archive. Paths are relative, without a leading or trailing slash. */
export type TarEntry =
  | { readonly kind: 'directory'; readonly path: string; readonly mode: number }
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly content: Uint8Array }
  | { readonly kind: 'symlink'; readonly path: string; readonly target: string }
  /** Another name of a file that stands earlier in the archive. */
  | { readonly kind: 'hardlink'; readonly path: string; readonly target: string };

const TYPE_FLAG = { file: '0', hardlink: '1', symlink: '2', directory: '5' } as const;

/**
 * A POSIX ustar archive with the entries in the given order, all owned by root and without times.
 *
 * @throws Error naming the entry whose path or link target is too long for the format
 */
export function tarArchive(entries: readonly TarEntry[]): Buffer {
  const blocks: Uint8Array[] = [];
  for (const entry of entries) {
    blocks.push(header(entry));
    if (entry.kind === 'file')
      blocks.push(entry.content, Buffer.alloc(-entry.content.length & (BLOCK_BYTES - 1)));
  }
  blocks.push(Buffer.alloc(2 * BLOCK_BYTES));
  return Buffer.concat(blocks);
}

/** The entries with the directories that they stand in before them, where they do not name these themselves. */
export function withParents(entries: readonly TarEntry[]): readonly TarEntry[] {
  const named = new Set(entries.filter(({ kind }) => kind === 'directory').map(({ path }) => path));
  const complete: TarEntry[] = [];
  for (const entry of entries) {
    const steps = entry.path.split('/');
    for (let length = 1; length < steps.length; length++) {
      const path = steps.slice(0, length).join('/');
      if (named.has(path)) continue;
      named.add(path);
      complete.push({ kind: 'directory', path, mode: 0o755 });
    }
    complete.push(entry);
  }
  return complete;
}

function header(entry: TarEntry): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  const [prefix, name] = splitPath(entry.kind === 'directory' ? `${entry.path}/` : entry.path);
  const target = 'target' in entry ? entry.target : '';
  if (Buffer.byteLength(target) > NAME_BYTES) {
    throw new Error(`tar entry ${entry.path}: its link target is longer than ${NAME_BYTES} bytes: ${target}`);
  }
  block.write(name, 0);
  block.write(octal('mode' in entry ? entry.mode : 0o777, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(entry.kind === 'file' ? entry.content.length : 0, 12), 124);
  block.write(octal(MODIFIED_AT_S, 12), 136);
  block.write(' '.repeat(8), 148);
  block.write(TYPE_FLAG[entry.kind], 156);
  block.write(target, 157);
  block.write('ustar\x0000', 257);
  block.write(prefix, 345);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${octal(sum, 7)} `, 148);
  return block;
}

/** Octal digits that end with a NUL within the field's width. */
function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

function splitPath(path: string): [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= NAME_BYTES) return ['', path];
  for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
    const prefix = path.slice(0, slash);
    const name = path.slice(slash + 1);
    if (Buffer.byteLength(prefix) <= PREFIX_BYTES && name !== '' && Buffer.byteLength(name) <= NAME_BYTES) {
      return [prefix, name];
    }
  }
  throw new Error(
    `tar entry ${path}: the path does not fit into the ${PREFIX_BYTES} + ${NAME_BYTES} bytes of ustar`,
  );
}
