import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { architectureNamed, hostArchitecture } from './architecture.ts';
import { buildImages } from './build.ts';
import { IMAGE_PROGRAMS, imageProgramNamed } from './programs.ts';

const MEBIBYTE = 1_048_576;
const LOCAL_REPOSITORY = 'localhost/runtime-enforcer';
const USAGE = `usage: npm run images -- [--architecture amd64|arm64] [--repository NAME] [--output DIRECTORY] [PROGRAM...]
Builds the container images, or those of the programs named: ${IMAGE_PROGRAMS.map(({ program }) => program.name).join(', ')}.`;

/** Images as OCI layouts in tars, with what they hold beside them, in images/dist. */
async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      architecture: { type: 'string', default: hostArchitecture().name },
      repository: { type: 'string', default: LOCAL_REPOSITORY },
      output: { type: 'string', default: join(import.meta.dirname, 'dist') },
    },
    allowPositionals: true,
  });
  const programs = positionals.length === 0 ? IMAGE_PROGRAMS : positionals.map(imageProgramNamed);
  const images = await buildImages(programs, {
    architecture: architectureNamed(values.architecture),
    repository: values.repository.replace(/\/$/, ''),
    directory: values.output,
  });
  for (const { ref, digest, tarPath, unpackedBytes, compressedBytes } of images) {
    const sizes = `${mebibytes(unpackedBytes)}, compressed ${mebibytes(compressedBytes)}`;
    console.log(`${ref}\n  ${digest}\n  ${sizes}\n  ${tarPath}`);
  }
  return 0;
}

function mebibytes(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`images: ${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  process.exitCode = 1;
}
