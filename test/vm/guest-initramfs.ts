import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { treeEntries } from './archive-tree.ts';
import { type CpioEntry, cpioArchive } from './cpio.ts';
import { shellQuote, shellScript } from './shell.ts';

const SCRIPTS = join(import.meta.dirname, 'guest');
/** Statically linked, from the Debian package busybox-static. */
const BUSYBOX = '/bin/busybox';
const PAYLOAD_ROOT = '/run/payload/';
const DEFAULT_MODE = 0o644;

/** A file, or everything below a directory, that a guest finds under `/run/payload`. */
export interface PayloadItem {
  /** In the guest, absolute, below `/run/payload`. */
  path: string;
  /** A path on the host (its mode is kept), or the bytes of a file. */
  source: string | Uint8Array;
  /** Permission bits of a file; those of the host's file or 0644 when left out. */
  mode?: number;
}

export interface GuestRun {
  mark: string;
  cgroups: 'v2' | 'hybrid';
  containerd: boolean;
  command: readonly string[];
  env: Readonly<Record<string, string>>;
  payload: readonly PayloadItem[];
}

/**
 * The archive that makes a guest do one run: busybox, our start scripts, the command, and the payload. It goes behind
 * the kernel's archive of modules.
 *
 * @throws RangeError for a payload path outside `/run/payload`, Error for a missing source
 */
export async function runArchive(run: GuestRun): Promise<Buffer> {
  const busybox = await readBusybox();
  const entries: CpioEntry[] = [
    { kind: 'file', path: 'bin/busybox', mode: 0o755, content: busybox },
    await script('initramfs-init.sh', 'init', 0o755),
    await script('start.sh', 'guest/start', 0o755),
    await script('containerd.toml', 'guest/containerd.toml', DEFAULT_MODE),
    { kind: 'file', path: 'guest/busybox', mode: 0o755, content: busybox },
    textFile('guest/settings', settings(run)),
    textFile('guest/command', shellScript(run.command, run.env)),
  ];
  for (const item of run.payload) entries.push(...(await payloadEntries(item)));
  return cpioArchive(entries);
}

async function readBusybox(): Promise<Buffer> {
  try {
    return await readFile(BUSYBOX);
  } catch (cause) {
    throw new Error(`${BUSYBOX} is missing; run \`apt-get install busybox-static\``, { cause });
  }
}

async function script(name: string, path: string, mode: number): Promise<CpioEntry> {
  return { kind: 'file', path, mode, content: await readFile(join(SCRIPTS, name)) };
}

function textFile(path: string, text: string): CpioEntry {
  return { kind: 'file', path, mode: DEFAULT_MODE, content: Buffer.from(text) };
}

function settings(run: GuestRun): string {
  const values = { MARK: run.mark, CGROUPS: run.cgroups, CONTAINERD: run.containerd ? 'yes' : 'no' };
  return Object.entries(values)
    .map(([name, value]) => `${name}=${shellQuote(value)}\n`)
    .join('');
}

async function payloadEntries(item: PayloadItem): Promise<CpioEntry[]> {
  if (!item.path.startsWith(PAYLOAD_ROOT)) {
    throw new RangeError(`payload path ${item.path}: expected a path below ${PAYLOAD_ROOT}`);
  }
  const path = `payload/${item.path.slice(PAYLOAD_ROOT.length)}`;
  if (typeof item.source !== 'string') {
    return [{ kind: 'file', path, mode: item.mode ?? DEFAULT_MODE, content: item.source }];
  }
  const entries = await treeEntries(item.source, path);
  const { mode } = item;
  if (mode === undefined) return entries;
  return entries.map((entry) => (entry.kind === 'file' ? { ...entry, mode } : entry));
}
