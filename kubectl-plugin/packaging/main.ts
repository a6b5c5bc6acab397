import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { COMPLETION_PROGRAM } from '../src/commands/completion.ts';
import { PLUGIN_VERSION } from '../src/plugin-version.ts';
import { bundlePlugin } from './bundle.ts';
import { makeExecutable } from './executable.ts';
import { archiveName, ARCHIVED, krewManifest, type PublishedArchive } from './krew-manifest.ts';
import { licenseTexts } from './licenses.ts';
import { hostPlatform, type Platform, platformName, PLATFORMS } from './platform.ts';

const run = promisify(execFile);
const WORKSPACE = join(import.meta.dirname, '..');
const OUTPUT = join(WORKSPACE, 'dist');
const MEBIBYTE = 1_048_576;
/** Nobody can publish there: a release names its own place. */
const NO_RELEASE_URL = 'https://release.invalid/runtime-enforcer';
const USAGE = `usage: npm run package -- [--release-url URL] [PLATFORM...]
Makes the plugin for this machine, or for the platforms named: ${PLATFORMS.map(platformName).join(', ')}.`;

/** Archives of one executable each, their checksums, and a manifest for krew, in kubectl-plugin/dist. */
async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { 'release-url': { type: 'string', default: NO_RELEASE_URL } },
    allowPositionals: true,
  });
  const wanted = positionals.length === 0 ? [platformName(hostPlatform())] : positionals;
  const platforms = PLATFORMS.filter((platform) => wanted.includes(platformName(platform)));
  if (platforms.length !== new Set(wanted).size) {
    console.error(USAGE);
    return 2;
  }
  await rm(OUTPUT, { recursive: true, force: true });
  const { file, packages } = await bundlePlugin(OUTPUT);
  const licenses = await licenseTexts(packages);
  const archives: PublishedArchive[] = [];
  for (const platform of platforms) archives.push(await packageFor(platform, file, licenses));
  const sums = archives.map(({ sha256, name }) => `${sha256}  ${name}\n`).join('');
  await writeFile(join(OUTPUT, 'SHA256SUMS'), sums);
  const manifest = krewManifest(PLUGIN_VERSION, values['release-url'].replace(/\/$/, ''), archives);
  await writeFile(join(OUTPUT, 'runtime-enforcer.yaml'), manifest);
  return 0;
}

async function packageFor(platform: Platform, script: string, licenses: string): Promise<PublishedArchive> {
  const directory = join(OUTPUT, platformName(platform));
  await mkdir(directory);
  const executable = await makeExecutable(script, join(directory, 'build'), platform);
  await copyFile(executable, join(directory, 'kubectl-runtime_enforcer'));
  await rm(join(directory, 'build'), { recursive: true });
  await writeFile(join(directory, 'kubectl_complete-runtime_enforcer'), COMPLETION_PROGRAM);
  await chmod(join(directory, 'kubectl_complete-runtime_enforcer'), 0o755);
  await copyFile(join(WORKSPACE, '../LICENSE'), join(directory, 'LICENSE'));
  await writeFile(join(directory, 'THIRD-PARTY-LICENSES'), licenses);
  const name = archiveName(PLUGIN_VERSION, platform);
  const archive = join(OUTPUT, name);
  // The same files make the same archive, whenever and by whomever it is made.
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  await run('tar', [
    '-c',
    ...same,
    '--use-compress-program=gzip -n',
    '-f',
    archive,
    '-C',
    directory,
    ...ARCHIVED,
  ]);
  const sha256 = createHash('sha256')
    .update(await readFile(archive))
    .digest('hex');
  const size = async (path: string) => `${((await stat(path)).size / MEBIBYTE).toFixed(1)} MiB`;
  const whole = await size(join(directory, 'kubectl-runtime_enforcer'));
  console.log(`${name}: ${whole}, archive ${await size(archive)}`);
  return { platform, name, sha256 };
}

process.exitCode = await main();
