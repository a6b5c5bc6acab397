import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { licenseTexts } from '../kubectl-plugin/packaging/licenses.ts';
import { NODE_IN_IMAGE } from './base-layer.ts';
import type { Program } from './program-bundle.ts';
import type { TarEntry } from './tar.ts';

const REPOSITORY = join(import.meta.dirname, '..');
const DIRECTORY = 'opt/runtime-enforcer';
const DOCUMENTS = 'usr/share/doc/runtime-enforcer';
const OWN_LICENSES = ['LICENSE', 'LICENSES/GPL-2.0-only.txt', 'LICENSES/MIT.txt', 'LICENSES/README.md'];

/** Where the program stands that an image starts. */
export function programInImage({ name }: Program): string {
  return `/${DIRECTORY}/${name}.mjs`;
}

/**
 * A bundled program, a command of its name for people who enter a container, and the licences of what was bundled.
 *
 * @param bundle the directory that it was bundled into
 * @param npmPackages the directories of what it was bundled from
 */
export async function programLayer(
  program: Program,
  bundle: string,
  npmPackages: readonly string[],
  bill: string,
): Promise<readonly TarEntry[]> {
  const entries: TarEntry[] = [];
  for (const name of (await readdir(bundle)).toSorted()) {
    const path = join(bundle, name);
    const isExecutable = ((await stat(path)).mode & 0o111) !== 0;
    entries.push(file(`${DIRECTORY}/${name}`, await readFile(path), isExecutable));
  }
  // Whatever has no ending is CommonJS to Node, which loads the program as what it is.
  const command = `#!${NODE_IN_IMAGE}\nimport('${programInImage(program)}');\n`;
  entries.push(file(`usr/local/bin/${program.name}`, command, true));
  for (const name of OWN_LICENSES) {
    entries.push(file(`${DOCUMENTS}/${name}`, await readFile(join(REPOSITORY, name))));
  }
  entries.push(file(`${DOCUMENTS}/THIRD-PARTY-LICENSES`, await licenseTexts(npmPackages)));
  entries.push(file(`${DOCUMENTS}/${program.name}.cdx.json`, bill));
  return entries;
}

function file(path: string, content: string | Buffer, isExecutable = false): TarEntry {
  const mode = isExecutable ? 0o755 : 0o644;
  return { kind: 'file', path, mode, content: typeof content === 'string' ? Buffer.from(content) : content };
}
