import { release } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { printProgress } from '../vm/progress.ts';
import type { Measured } from './figure.ts';
import { inTemporaryDirectory, startHostAgent } from './host-agent.ts';
import { writePolicyFiles } from './policy-files.ts';

const POLICIES = 10_000;
const CAPACITY = 1_048_576;
/** Until the reading thread has ended and the heap has been tidied. */
const IDLE_MS = 20_000;
const BYTES_PER_MIB = 1024 * 1024;

/** Resident memory of the agent's process: with nothing to do, and with 10,000 policies in force. */
export async function benchRss(report: (measured: Measured) => void): Promise<void> {
  const mib = (value: number, figure: string): void =>
    report({ figure, value: value / BYTES_PER_MIB, unit: 'MiB', kernel: release() });
  mib(await residentBytes(0, []), 'rss.idle_mib');
  mib(await residentBytes(POLICIES, ['--capacity', String(CAPACITY)]), 'rss.policies_10000_mib');
}

async function residentBytes(policies: number, args: readonly string[]): Promise<number> {
  return await inTemporaryDirectory(async (directory) => {
    await writePolicyFiles(join(directory, 'policies'), policies);
    const start = performance.now();
    const agent = await startHostAgent({ directory, args });
    printProgress(`${policies} policies: ready after ${((performance.now() - start) / 1_000).toFixed(1)} s`);
    try {
      const ready = await agent.metric('runtime_enforcer_policies{state="ready"}');
      if (ready !== policies) throw new Error(`${ready} of ${policies} policies are ready`);
      await delay(IDLE_MS);
      return await agent.residentBytes();
    } finally {
      await agent.stop();
    }
  });
}
