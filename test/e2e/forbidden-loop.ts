import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Person } from './person.ts';
import { boundPod, CAT, COUNTS, SHELL, SLEEP } from './workload.ts';

const ATTEMPTS = `${COUNTS}/attempts`;
const PASSED = `${COUNTS}/passed`;
const PAUSE_S = 0.1;
const SCRIPT = [
  `n=0; m=0; echo 0 > ${PASSED}`,
  `while true; do n=$((n+1)); echo $n > ${ATTEMPTS}`,
  `if ${CAT} /etc/passwd > /dev/null 2>&1; then m=$((m+1)); echo $m > ${PASSED}; fi`,
  `${SLEEP} ${PAUSE_S}; done`,
].join('; ');
const READ = `read n < ${ATTEMPTS}; read m < ${PASSED}; echo "$n $m"`;
const RETRY_MS = 500;
/** A count is written anew each time, and empty for a moment. */
const TRIES = 5;

/** How often a forbidden program was tried, and how often it ran. */
export interface LoopCounts {
  readonly attempts: number;
  readonly passed: number;
}

/**
 * A pod that tries again and again to run what its policy does not list, and counts by the shell's own means, as YAML.
 *
 * @param policy has to list the shell and sleep, and not cat
 */
export function forbiddenLoopPod(name: string, policy: string): string {
  return boundPod(name, policy, SCRIPT);
}

/** What the pod of {@link forbiddenLoopPod} has counted since its container started. */
export async function loopCounts(tenant: Person, name: string): Promise<LoopCounts> {
  for (let tried = 1; ; tried++) {
    const { code, text } = await tenant.exec(`pod/${name}`, SHELL, '-c', READ);
    const [, attempts, passed] = /^(\d+) (\d+)$/m.exec(text) ?? [];
    if (code === 0 && attempts !== undefined) {
      return { attempts: Number(attempts), passed: Number(passed) };
    }
    assert.ok(tried < TRIES, `the counts of pod ${name} cannot be read: ${text}`);
    await delay(RETRY_MS);
  }
}

/** A pod of {@link forbiddenLoopPod} that runs. */
export interface ForbiddenLoop {
  counts(): Promise<LoopCounts>;
}

/** Starts such a pod, and waits until it runs. */
export async function startForbiddenLoop(
  tenant: Person,
  name: string,
  policy: string,
): Promise<ForbiddenLoop> {
  await tenant.kubectl('apply -f -', forbiddenLoopPod(name, policy));
  await tenant.kubectl(`wait --for=condition=Ready pod/${name} --timeout=120s`);
  return { counts: async () => await loopCounts(tenant, name) };
}
