import { KUBE_FLAGS } from '../cluster/kube-flags.ts';
import type { RunCommand } from '../command-context.ts';
import { EXIT_OK } from '../exit-code.ts';

/** `options`. */
export const printKubeOptions: RunCommand = async ({ terminal }) => {
  const width = Math.max(...KUBE_FLAGS.map(({ flags }) => flags.length));
  terminal.write('Every command takes these:\n\n');
  for (const { flags, help } of KUBE_FLAGS) terminal.write(`  ${flags.padEnd(width)}  ${help}\n`);
  return await Promise.resolve(EXIT_OK);
};
