import type { ReportedBinding, ReportedContainer, ReportedPod } from '@runtime-enforcer/rpc/reported';
import { containerLabel, type Difference, podLabel } from './difference.ts';

/**
 * Compares what an agent believes to have written into the kernel of its node with what the kernel holds, and the
 * cgroups that it knows with those that are there.
 *
 * @param runningIds of the containers that run, as the API server has it: others may have no cgroup any more
 */
export function compareBindings(
  pods: readonly ReportedPod[],
  bindings: readonly ReportedBinding[],
  runningIds: ReadonlySet<string>,
): readonly Difference[] {
  const byCgroup = new Map<bigint, ReportedBinding[]>();
  for (const binding of bindings) {
    const others = byCgroup.get(binding.cgroupId);
    if (others === undefined) byCgroup.set(binding.cgroupId, [binding]);
    else others.push(binding);
  }
  const differences: Difference[] = [];
  const accounted = new Set<bigint>();
  for (const { namespace, name, uid, containers } of pods) {
    for (const container of containers) {
      if (container.cgroupId !== 0n) accounted.add(container.cgroupId);
      const subject = {
        pod: podLabel({ namespace, name, id: uid }),
        container: containerLabel(container),
      };
      const held = byCgroup.get(container.cgroupId) ?? [];
      const found = [
        ...(runningIds.has(container.id) ? cgroupDifference(container) : []),
        ...heldDifferences(container, held),
      ];
      differences.push(...found.map((difference) => ({ ...difference, ...subject })));
    }
  }
  for (const binding of bindings) {
    if (!accounted.has(binding.cgroupId))
      differences.push({ kind: 'kernel-stray', kernel: bindingLabel(binding) });
  }
  return differences;
}

/** How a binding is named. */
export function bindingLabel({ cgroupId, slot }: ReportedBinding): string {
  return `place ${slot} for cgroup ${cgroupId}`;
}

function cgroupDifference({ cgroupId, presentCgroupId }: ReportedContainer): Difference[] {
  // One that the agent leaves alone it has not looked for.
  if (cgroupId === 0n || cgroupId === presentCgroupId) return [];
  const node = presentCgroupId === 0n ? 'none' : String(presentCgroupId);
  return [{ kind: 'kernel-field', field: 'cgroup id', agent: String(cgroupId), node }];
}

function heldDifferences(container: ReportedContainer, held: readonly ReportedBinding[]): Difference[] {
  const isToBeHeld = container.slot !== 0;
  if (!isToBeHeld) {
    const isExpectedHeld = container.state === 'enforced' || container.state === 'learning';
    if (isExpectedHeld) return [{ kind: 'kernel-missing' }];
    return held.length === 0 ? [] : [{ kind: 'kernel-unexpected' }];
  }
  const indexed = held.find((binding) => binding.indexed);
  if (indexed === undefined) return [{ kind: 'kernel-missing' }];
  const differences = fieldDifferences(container, indexed);
  for (const { slot } of held.filter((binding) => binding !== indexed))
    differences.push({
      ...{ kind: 'kernel-field', field: 'second place' },
      ...{ agent: 'none', kernel: String(slot) },
    });
  if (differences.length > 0) return differences;
  if (indexed.policyId !== 0 && indexed.mode === 'unknown') differences.push({ kind: 'kernel-no-list' });
  if (!indexed.namespaceIndexed) differences.push({ kind: 'kernel-no-namespace' });
  return differences;
}

function fieldDifferences(container: ReportedContainer, binding: ReportedBinding): Difference[] {
  const fields: [field: string, agent: string | number | bigint, kernel: string | number | bigint][] = [
    ['slot', container.slot, binding.slot],
    ['generation', container.generation, binding.generation],
    ['cgroup id', container.cgroupId, binding.slotCgroupId],
    ['mount namespace', container.mountNamespace, binding.mountNamespace],
    ['policy id', container.policyId, binding.policyId],
  ];
  // Of one that waits, what an agent before had bound stays, whatever that was.
  if (container.state === 'enforced' || container.state === 'learning')
    fields.push(['learning', String(container.state === 'learning'), String(binding.learning)]);
  return fields
    .filter(([, inAgent, inKernel]) => inAgent !== inKernel)
    .map(([field, inAgent, inKernel]) => ({
      ...{ kind: 'kernel-field', field },
      ...{ agent: String(inAgent), kernel: String(inKernel) },
    }));
}
