import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { openKernel } from './guest-kernel.ts';
import { loadPolicies } from './policy-loading.ts';
import { workloadPolicies } from './workload.ts';

/** As many 50-path policies as the default capacity surely takes. */
const POLICIES = 1_000;
const MANY_POLICIES = 10_000;
const MANY_CAPACITY = 1_048_576;
const CGROUP = '/sys/fs/cgroup/bench';
/** Kernel memory that a process has for itself, whatever it loads. */
const OF_THE_PROCESS = ['kernel_stack', 'pagetables', 'sec_pagetables', 'sock'];
const READING_EVERY_MS = 500;
const QUIET_READINGS = 4;
const STILL_BYTES = 8 * 1024;

function report(figure: string, value: number): void {
  console.log(JSON.stringify({ figure, value, unit: 'bytes', kernel: release() }));
}

/** From now on, what the kernel allocates for this process is counted in a cgroup of its own. */
function enterCgroup(): void {
  writeFileSync('/sys/fs/cgroup/cgroup.subtree_control', '+memory');
  mkdirSync(CGROUP);
  writeFileSync(`${CGROUP}/cgroup.procs`, '0');
}

/** Waits until nothing is being freed any more: maps go in the background. */
async function settledKernelBytes(): Promise<number> {
  let before = kernelBytes();
  for (let quiet = 0; quiet < QUIET_READINGS;) {
    await delay(READING_EVERY_MS);
    const now = kernelBytes();
    quiet = Math.abs(now - before) <= STILL_BYTES ? quiet + 1 : 0;
    before = now;
  }
  return before;
}

function kernelBytes(): number {
  const stat = new Map(
    readFileSync(`${CGROUP}/memory.stat`, 'utf8')
      .split('\n')
      .map((line) => line.split(' ') as [string, string]),
  );
  const bytes = (name: string): number => {
    const value = stat.get(name);
    if (value === undefined) throw new Error(`memory.stat of this kernel has no ${name}`);
    return Number(value);
  };
  return OF_THE_PROCESS.reduce((rest, name) => rest - bytes(name), bytes('kernel'));
}

/** Opens the kernel side, loads policies, and tells what each of the two took. */
async function measure(
  policies: number,
  capacity?: number,
): Promise<{ readonly fixed: number; readonly policies: number }> {
  const before = await settledKernelBytes();
  const kernel = await openKernel({ attachment: 'auto', ...(capacity !== undefined && { capacity }) });
  const open = await settledKernelBytes();
  await loadPolicies(kernel.table, workloadPolicies(policies));
  const loaded = await settledKernelBytes();
  await kernel.close({ release: true });
  if (open <= before || loaded <= open)
    throw new Error(`kernel memory does not grow: ${before}, open ${open}, loaded ${loaded} bytes`);
  return { fixed: open - before, policies: loaded - open };
}

async function main(): Promise<void> {
  enterCgroup();
  // What a process takes only once, such as the addon's file, is not the maps'.
  await measure(1);
  const small = await measure(POLICIES);
  report('memory.fixed_bytes', small.fixed);
  report('memory.per_policy_bytes', small.policies / POLICIES);
  const large = await measure(MANY_POLICIES, MANY_CAPACITY);
  report('memory.policies_10000_bytes', large.fixed + large.policies);
}

await main();
