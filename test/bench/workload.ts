import { parseWorkloadPolicy, type WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';

/** Every bench that loads policies loads these: 50 paths each, out of 3,000. */
export const PATHS_PER_POLICY = 50;
const DISTINCT_PATHS = 3_000;
export const WORKLOAD_NAMESPACE = 'bench';
export const WORKLOAD_CONTAINER = 'main';

/** Of 100 paths so many begin so: lengths as programs of ordinary images have them, 17 to 108 bytes. */
const DIRECTORIES: readonly (readonly [count: number, directory: string])[] = [
  [45, '/usr/bin/'],
  [20, '/usr/local/bin/'],
  [10, '/usr/sbin/'],
  [12, '/usr/lib/postgresql/17/bin/'],
  [8, '/opt/services/payments/current/node_modules/.bin/'],
  [5, '/usr/lib/python3/dist-packages/service/virtualenv/lib/python3.13/site-packages/gunicorn/tools/bin/'],
];

/** The paths of the workload, in a fixed order. */
export function workloadPaths(): string[] {
  const directories = DIRECTORIES.flatMap(([count, directory]) => Array<string>(count).fill(directory));
  return Array.from({ length: DISTINCT_PATHS }, (_, index) => {
    // 61 has no divisor in common with 100, so neighbours differ in length.
    const directory = directories[(index * 61) % directories.length] ?? '/bin/';
    return `${directory}tool${index.toString().padStart(4, '0')}`;
  });
}

/** The lists of the workload's policies: no two are equal, and the same number gives the same list on every run. */
export function* workloadLists(count: number): Generator<readonly string[]> {
  const paths = workloadPaths();
  const random = pseudoRandom();
  for (let policy = 0; policy < count; policy++) {
    const chosen = new Set<number>();
    while (chosen.size < PATHS_PER_POLICY) chosen.add(random() % paths.length);
    yield Array.from(chosen, (index) => paths[index] ?? '');
  }
}

/** The workload's policies, `bench/policy-<number>`, in protect mode, each for one container. */
export function* workloadPolicies(count: number): Generator<WorkloadPolicy> {
  let number = 0;
  for (const allowed of workloadLists(count)) yield policyOf(`policy-${number++}`, allowed, 'protect');
}

/** A policy of the bench's namespace for one container. Throws an Error if the product refuses it. */
export function policyOf(
  name: string,
  allowed: readonly string[],
  mode: 'monitor' | 'protect',
): WorkloadPolicy {
  const parsed = parseWorkloadPolicy(policyResource(name, allowed, mode));
  if (!parsed.ok) throw new Error(`policy ${name} of the bench is refused: ${JSON.stringify(parsed.errors)}`);
  return parsed.value;
}

/** The same as a user would write it. */
export function policyResource(
  name: string,
  allowed: readonly string[],
  mode: 'monitor' | 'protect',
): object {
  return {
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { name, namespace: WORKLOAD_NAMESPACE },
    spec: { mode, rulesByContainer: { [WORKLOAD_CONTAINER]: { executables: { allowed } } } },
  };
}

/** Marsaglia's xorshift with 32 bits: repeatable, and plenty for choosing paths. */
function pseudoRandom(): () => number {
  let state = 0x9e37_79b9;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}
