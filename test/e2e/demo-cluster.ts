import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { OWN_NETWORK, prepareWholeCluster } from './suite.ts';

const OPTIONS = ['--no-shell'];
const USAGE_EXIT_CODE = 2;

/** Makes what the cluster is made of, and plays the quick start in a network of its own. Returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const unknown = args.find((arg) => !OPTIONS.includes(arg));
  if (unknown !== undefined) {
    console.error(`${unknown} is no option; there is: ${OPTIONS.join(', ')}`);
    return USAGE_EXIT_CODE;
  }
  const env = { ...process.env, ...(await prepareWholeCluster()) };
  const [program, ...words] = [...OWN_NETWORK, process.execPath, join(import.meta.dirname, 'demo-play.ts')];
  const child = spawn(program, [...words, ...args], { env, stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}

process.exitCode = await main(process.argv.slice(2));
