import { join } from 'node:path';
import { runHostCommand } from '../vm/host-command.ts';
import { NODE_BINARY, REPOSITORY } from '../vm/repository.ts';

/** Where `npm run package` puts the plugin for this machine, and nothing else that runs. */
export const PLUGIN_DIRECTORY = join(
  REPOSITORY,
  'kubectl-plugin/dist',
  `linux-${process.arch === 'x64' ? 'amd64' : process.arch}`,
);

/** Packages the plugin once for all tests, as a release does. */
export async function setup(): Promise<void> {
  await runHostCommand([NODE_BINARY, join(REPOSITORY, 'kubectl-plugin/packaging/main.ts')]);
}
