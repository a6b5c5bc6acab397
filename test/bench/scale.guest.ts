import { release } from 'node:os';
import { builtFiles } from '@runtime-enforcer/agent/built-files';
import { loadNative } from '@runtime-enforcer/agent/kernel/native';
import { attachedPrograms, countInstructions, enforcedPlace, PATHS, stormIn } from './checked-exec.ts';
import { costPerExec } from './exec-cost.ts';
import { openKernel } from './guest-kernel.ts';
import { loadPolicies } from './policy-loading.ts';
import { workloadPolicies } from './workload.ts';

const POLICIES = 10_000;
/** Room for 10,000 policies of 50 paths. */
const CAPACITY = 1_048_576;

function report(figure: string, value: number, unit = 'instructions'): void {
  console.log(JSON.stringify({ figure, value, unit, kernel: release() }));
}

/** The same container is measured before and after the other policies are loaded. */
async function main(): Promise<void> {
  const native = loadNative(builtFiles().addon);
  countInstructions();
  const kernel = await openKernel({ attachment: 'auto', capacity: CAPACITY });
  const programs = attachedPrograms(native, kernel);
  const place = await enforcedPlace(kernel, 'measured', 'protect');
  const one = await costPerExec(programs, stormIn(place, PATHS['3']), 'ran');
  report('scale.one_policy.3', one);
  await loadPolicies(kernel.table, workloadPolicies(POLICIES - 1), (count) =>
    console.log(`${count} policies`),
  );
  const many = await costPerExec(programs, stormIn(place, PATHS['3']), 'ran');
  report('scale.allowed.3', many);
  report('scale.growth_percent', (many / one - 1) * 100, '%');
  await place.end();
  await kernel.close({ release: true });
}

await main();
