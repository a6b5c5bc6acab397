import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { hostPlatform, type Platform, platformName } from './platform.ts';

const run = promisify(execFile);

/** By these Node finds what is in its own file (see Node's documentation of single executable applications). */
const RESOURCE = 'NODE_SEA_BLOB';
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const MACHO_SEGMENT = 'NODE_SEA';

/**
 * Makes one executable of Node and a script.
 *
 * @param directory gets the executable and what it is made from
 * @returns the executable's path
 */
export async function makeExecutable(script: string, directory: string, platform: Platform): Promise<string> {
  await mkdir(directory, { recursive: true });
  const isHost = platformName(platform) === platformName(hostPlatform());
  const executable = join(directory, 'kubectl-runtime_enforcer');
  await copyFile(isHost ? process.execPath : await fetchNode(directory, platform), executable);
  await chmod(executable, 0o755);
  // Half of Node's size on Linux are symbols for debuggers, which only a tool for that machine's code can remove.
  if (isHost && platform.os === 'linux') await run('strip', [executable]);
  const blob = join(directory, 'blob');
  const config = join(directory, 'sea.json');
  const settings = {
    main: script,
    output: blob,
    disableExperimentalSEAWarning: true,
    // Compiled code is that of one machine and one Node; it halves the time to start.
    useCodeCache: isHost,
  };
  await writeFile(config, JSON.stringify(settings));
  await run(process.execPath, ['--experimental-sea-config', config]);
  // As a program of its own, because it tells about oddities of Node's file that nobody can change.
  const injector = fileURLToPath(import.meta.resolve('postject/dist/cli.js'));
  const segment = platform.os === 'darwin' ? ['--macho-segment-name', MACHO_SEGMENT] : [];
  await run(process.execPath, [injector, executable, RESOURCE, blob, '--sentinel-fuse', FUSE, ...segment]);
  return executable;
}

/** The same version of Node as runs here, for another platform, from its npm package. */
async function fetchNode(directory: string, { nodePackage }: Platform): Promise<string> {
  const wanted = `${nodePackage}@${process.versions.node}`;
  await run('npm', ['install', '--no-save', '--force', '--ignore-scripts', '--prefix', directory, wanted]);
  return join(directory, 'node_modules', nodePackage, 'bin/node');
}
