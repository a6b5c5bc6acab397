import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

const LICENSE_FILE = /^(licen[cs]e|copying|notice)/i;

/**
 * The licences of packages, one after another.
 *
 * @param directories where each package stands
 * @throws Error for a package without a file that says its licence
 */
export async function licenseTexts(directories: readonly string[]): Promise<string> {
  const texts = await Promise.all(directories.map(textOf));
  return texts.join('\n');
}

async function textOf(directory: string): Promise<string> {
  const manifest = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as {
    readonly name?: string;
    readonly version?: string;
    readonly license?: string;
  };
  const { name = basename(directory), version = '', license } = manifest;
  const files = (await readdir(directory)).filter((file) => LICENSE_FILE.test(file)).toSorted();
  if (files.length === 0 && license === undefined) throw new Error(`${name} does not say its licence`);
  const bodies = await Promise.all(files.map(async (file) => await readFile(join(directory, file), 'utf8')));
  return `${name} ${version} (${license ?? 'see below'})\n${'='.repeat(72)}\n${bodies.join('\n')}\n`;
}
