import { PROGRAMS } from './guest-files.ts';

/** Ways to exec in a place (modes of the guest program `attack`) that are right for a listed program. */
export const RUNS: readonly (readonly [string, ...string[]])[] = [
  ['plain', '/usr/bin/allowed'],
  ['relative', '/usr/bin', './allowed'],
  ['execveat', '/usr/bin', 'allowed'],
  ['fexecve', '/usr/bin/allowed'],
  ['vfork', '/usr/bin/allowed'],
  ['orphan', '/usr/bin/allowed'],
  ['thread', '/usr/bin/allowed'],
];

/**
 * Ways that must be denied. `reason`: the outcome that tells why; without one the file is named rightly and is not
 * listed. The jail is a root in which the forbidden program has the path of the allowed one.
 */
export const DENIED: readonly { argv: readonly [string, ...string[]]; reason?: string }[] = [
  { argv: ['plain', '/usr/bin/forbidden'] },
  { argv: ['relative', '/usr/bin', './forbidden'] },
  { argv: ['execveat', '/usr/bin', 'forbidden'] },
  { argv: ['fexecve', '/usr/bin/forbidden'] },
  { argv: ['memfd', '/usr/bin/forbidden', 'usr/bin/allowed'], reason: 'memfd' },
  { argv: ['memfd-sealed', '/usr/bin/forbidden'], reason: 'memfd' },
  { argv: ['unlinked', '/usr/bin/forbidden', '/tmp/gone'], reason: 'unlinked' },
  { argv: ['unnamed', '/usr/bin/forbidden', '/mnt'], reason: 'unlinked' },
  { argv: ['chroot', '/tmp/jail', '/usr/bin/allowed'] },
  { argv: ['open-tree', '/tmp/jail', 'usr/bin/allowed'], reason: 'foreign_mount' },
  { argv: ['open-tree-closed', '/tmp/jail', 'usr/bin/allowed'], reason: 'foreign_mount' },
  { argv: ['user-bind', '/usr/bin/forbidden', '/usr/bin/allowed'], reason: 'other_mount_namespace' },
  { argv: ['user-chroot', '/tmp/jail', '/usr/bin/allowed'], reason: 'other_mount_namespace' },
  { argv: ['user-pivot', '/tmp/jail', '/usr/bin/allowed'], reason: 'other_mount_namespace' },
  { argv: ['user-open-tree', '/tmp/jail', 'usr/bin/allowed'], reason: 'other_mount_namespace' },
  { argv: ['user-fsmount', '/usr/bin/forbidden', 'allowed'], reason: 'other_mount_namespace' },
  { argv: ['setns', '1', `${PROGRAMS}/marker`], reason: 'other_mount_namespace' },
  { argv: ['setns-orphan', '1', `${PROGRAMS}/marker`], reason: 'other_mount_namespace' },
  { argv: ['setns-vfork', '1', `${PROGRAMS}/marker`], reason: 'other_mount_namespace' },
  { argv: ['setns-vfork-sibling', '1', `${PROGRAMS}/marker`], reason: 'other_mount_namespace' },
  { argv: ['orphan', '/usr/bin/forbidden'] },
  { argv: ['vfork', '/usr/bin/forbidden'] },
  { argv: ['vfork-sibling', '/usr/bin/forbidden'] },
  { argv: ['thread', '/usr/bin/forbidden'] },
];
