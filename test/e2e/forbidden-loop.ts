import assert from 'node:assert/strict';
import type { Person } from './person.ts';
import { boundPod, CAT, SHELL, SLEEP } from './workload.ts';

const ATTEMPTS = '/tmp/attempts';
const PASSED = '/tmp/passed';
const PAUSE_S = 0.1;

/** How often a forbidden program was tried, and how often it ran. */
export interface LoopCounts {
  readonly attempts: number;
  readonly passed: number;
}

/** A pod that tries again and again to run what its policy does not list, and counts by the shell's own means. */
export interface ForbiddenLoop {
  counts(): Promise<LoopCounts>;
}

/** @param policy has to list the shell and sleep, and not cat */
export async function startForbiddenLoop(
  tenant: Person,
  name: string,
  policy: string,
): Promise<ForbiddenLoop> {
  const script = [
    `n=0; m=0; echo 0 > ${PASSED}`,
    `while true; do n=$((n+1)); echo $n > ${ATTEMPTS}`,
    `if ${CAT} /etc/passwd > /dev/null 2>&1; then m=$((m+1)); echo $m > ${PASSED}; fi`,
    `${SLEEP} ${PAUSE_S}; done`,
  ].join('; ');
  await tenant.kubectl('apply -f -', boundPod(name, policy, script));
  await tenant.kubectl(`wait --for=condition=Ready pod/${name} --timeout=120s`);
  return {
    async counts() {
      const read = `read n < ${ATTEMPTS}; read m < ${PASSED}; echo "$n $m"`;
      const { code, text } = await tenant.exec(`pod/${name}`, SHELL, '-c', read);
      assert.equal(code, 0, `the counts of pod ${name} cannot be read: ${text}`);
      const [attempts = Number.NaN, passed = Number.NaN] = text.trim().split(' ').map(Number);
      assert.ok(attempts >= 0 && passed >= 0, `pod ${name} counts ${JSON.stringify(text)}`);
      return { attempts, passed };
    },
  };
}
