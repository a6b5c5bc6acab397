import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { goToolchain } from '../cluster/go-toolchain.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

const SOURCE = join(import.meta.dirname, 'collector');
const FILES = ['main.go', 'go.mod', 'go.sum'];
const PROGRAM = 'otelcol';

/**
 * The OpenTelemetry Collector with the components of the bundled configuration, built from their Go modules: minutes
 * the first time, nothing afterwards.
 *
 * @returns the program's path
 * @throws HostCommandError with the compiler's words
 */
export async function collectorBinary(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'otelcol',
    key: contentKey(await Promise.all(FILES.map((file) => readFile(join(SOURCE, file))))),
    title: 'OpenTelemetry Collector (from source, some minutes)',
    make: async (directory) => {
      const source = join(directory, 'source');
      await cp(SOURCE, source, { recursive: true });
      const go = await goToolchain(progress);
      // The build yields to everything else: tests that measure time may run beside it.
      const argv = ['nice', '-n', '19', 'ionice', '-c', '3', go, 'build', '-p', '1', '-trimpath'] as const;
      await runHostCommand([...argv, '-ldflags', '-s -w', '-o', join(directory, PROGRAM), '.'], {
        cwd: source,
        env: {
          CGO_ENABLED: '0',
          GOTOOLCHAIN: 'auto',
          GOWORK: 'off',
          GOFLAGS: '-mod=readonly -buildvcs=false',
        },
      });
      await rm(source, { recursive: true });
    },
  };
  return join(await cachedAsset(asset, progress), PROGRAM);
}
