import { copyFile, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { runHostCommand } from './host-command.ts';

/** What guests load: the disk, overlay for containers, bridges and netfilter for pod networks, a network card. */
export const GUEST_MODULES = [
  'virtio_pci',
  'virtio_blk',
  'virtio_net',
  'ext4',
  'overlay',
  'bridge',
  'br_netfilter',
  'veth',
  'nf_conntrack',
  'nf_tables',
  'nft_compat',
  'nft_chain_nat',
  'nft_masq',
  'nft_nat',
  'nft_fib_inet',
  'nft_numgen',
  'xt_addrtype',
  'xt_comment',
  'xt_conntrack',
  'xt_mark',
  'xt_MASQUERADE',
  'xt_nat',
  'xt_statistic',
] as const;

/**
 * The files of some modules and of all they depend on.
 *
 * @param modulesDep the text of depmod's `modules.dep`
 * @param names module names; one that the kernel has built in, or does not have, is left out
 * @returns paths relative to the directory of `modules.dep`, sorted
 */
export function moduleClosure(modulesDep: string, names: readonly string[]): string[] {
  const wanted = new Set(names.map(normalName));
  const files = new Set<string>();
  for (const line of modulesDep.split('\n')) {
    const colon = line.indexOf(':');
    if (colon < 0) continue;
    const file = line.slice(0, colon);
    if (!wanted.has(normalName(basename(file).replace(/\.ko.*$/, '')))) continue;
    files.add(file);
    for (const dependency of line.slice(colon + 1).split(' ')) if (dependency !== '') files.add(dependency);
  }
  return [...files].sort();
}

function normalName(name: string): string {
  return name.replaceAll('-', '_');
}

/**
 * Copies the modules that guests load out of a kernel package, uncompressed, with their indexes for modprobe.
 *
 * @param source the package's directory for its release, `…/lib/modules/RELEASE`
 * @param root where `lib/modules/RELEASE` is made
 */
export async function copyGuestModules(source: string, root: string): Promise<void> {
  const release = basename(source);
  const sourceRoot = join(source, '../../..');
  await runHostCommand(['depmod', '-b', sourceRoot, release]);
  const target = join(root, 'lib/modules', release);
  await mkdir(target, { recursive: true });
  const modulesDep = await readFile(join(source, 'modules.dep'), 'utf8');
  for (const file of moduleClosure(modulesDep, GUEST_MODULES)) {
    const copy = join(target, file);
    await mkdir(dirname(copy), { recursive: true });
    await copyFile(join(source, file), copy);
    if (copy.endsWith('.xz')) await runHostCommand(['xz', '-d', copy]);
    else if (copy.endsWith('.zst')) await runHostCommand(['zstd', '-q', '-d', '--rm', copy]);
  }
  for (const name of await readdir(source)) {
    if (/^modules\.(order|builtin)/.test(name)) await copyFile(join(source, name), join(target, name));
  }
  await writeFile(join(target, 'modules.order'), '', { flag: 'a' });
  await runHostCommand(['depmod', '-b', root, release]);
}
