import { release } from 'node:os';
import { openExampleMaps } from '@runtime-enforcer/agent/kernel/kernel-maps-example';
import { loadNative } from '@runtime-enforcer/agent/kernel/native';
import { createPolicyTable } from '@runtime-enforcer/agent/policies/policy-table';
import { median, type Measured } from './figure.ts';
import { loadPolicies } from './policy-loading.ts';
import { workloadPolicies } from './workload.ts';

const POLICIES = 10_000;
const CAPACITY = 1_048_576;
/** The median of so many, because the machine has other things to do. */
const RUNS = 3;
const LAG_TICK_MS = 5;

/**
 * Policies per second through the agent's own table into real maps, from resources that were read already; and how
 * long the loop was kept from everything else meanwhile.
 */
export async function benchLoad(report: (measured: Measured) => void): Promise<void> {
  const policies = [...workloadPolicies(POLICIES)];
  const rates: number[] = [];
  const lags: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const native = loadNative();
    const { maps, close } = openExampleMaps(native, { capacity: CAPACITY });
    const complain = (fields: object, message: string): void => console.error(message, fields);
    const table = await createPolicyTable({
      native,
      maps,
      log: { debug: () => undefined, info: () => undefined, warn: complain, error: complain },
      countFailure: (place) => console.error(`survived a failure: ${place}`),
    });
    const stopLag = watchLag();
    const start = performance.now();
    await loadPolicies(table, policies);
    rates.push(POLICIES / ((performance.now() - start) / 1_000));
    lags.push(stopLag());
    await table.settled();
    close();
  }
  report({ figure: 'load.policies_per_second', value: median(rates), unit: '1/s', kernel: release() });
  report({ figure: 'load.loop_lag_max_ms', value: median(lags), unit: 'ms', kernel: release() });
}

/** Returns what stops the watch and tells the longest time that a timer came late. */
function watchLag(): () => number {
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - LAG_TICK_MS);
    last = now;
  }, LAG_TICK_MS);
  return () => {
    clearInterval(timer);
    return longest;
  };
}
