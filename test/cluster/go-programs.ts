import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';
import { goToolchain } from './go-toolchain.ts';

/** Programs of one Go module, each in the package of its name below `cmd`. */
export interface GoPrograms {
  /** Its path, such as `sigs.k8s.io/cri-tools`. */
  readonly module: string;
  /** Without `v`. */
  readonly version: string;
  readonly programs: readonly string[];
  /** `test`: the package holds nothing but tests, which are the program. */
  readonly kind: 'build' | 'test';
}

/**
 * Builds programs from their module into a directory, which holds nothing else of it afterwards.
 *
 * @throws HostCommandError with the compiler's words
 */
export async function buildGoPrograms(
  { module, version, programs, kind }: GoPrograms,
  directory: string,
  progress: Progress,
): Promise<void> {
  const go = await goToolchain(progress);
  const source = join(directory, 'source');
  await mkdir(source);
  await writeFile(join(source, 'go.mod'), `module programs\n\nrequire ${module} v${version}\n`);
  const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'auto', GOWORK: 'off', GOFLAGS: '-mod=mod -buildvcs=false' };
  const command = kind === 'build' ? ['build'] : ['test', '-c', '-vet=off'];
  for (const program of programs) {
    await runHostCommand(
      [
        // The build yields to everything else: tests that measure time may run beside it.
        ...(['nice', '-n', '19', 'ionice', '-c', '3', go] as const),
        ...[...command, '-p', '1', '-trimpath', '-ldflags', '-s -w'],
        ...['-o', join(directory, program), `${module}/cmd/${program}`],
      ],
      { cwd: source, env },
    );
  }
  await rm(source, { recursive: true });
}
