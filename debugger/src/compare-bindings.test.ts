import { describe, expect, it } from 'vitest';
import { compareBindings } from './compare-bindings.ts';
import { reportedBinding, reportedContainer, reportedPod } from './comparison-example.ts';
import { differenceText } from './difference.ts';
import type { ReportedBinding, ReportedContainer } from '@runtime-enforcer/rpc/reported';

const CONTAINER = 'pod shop/web-1 (uid-1): container app (c1): ';

function found(
  container: Partial<ReportedContainer>,
  bindings: readonly ReportedBinding[],
  running: readonly string[] = ['c1'],
): string[] {
  const pod = reportedPod({ containers: [reportedContainer(container)] });
  return compareBindings([pod], bindings, new Set(running)).map(differenceText);
}

describe('compareBindings', () => {
  it('finds nothing where the kernel holds what was written', () => {
    expect(found({}, [reportedBinding()])).toEqual([]);
    const learning = { state: 'learning', policyId: 0 } as const;
    expect(found(learning, [reportedBinding({ learning: true, policyId: 0, mode: 'unknown' })])).toEqual([]);
    for (const state of ['unbound', 'waiting'] as const)
      expect(found({ state, slot: 0, generation: 0, policyId: 0 }, [])).toEqual([]);
  });

  it('finds a container that the kernel does not hold', () => {
    const text = `${CONTAINER}the kernel does not hold it, so what it starts is neither checked nor learned`;
    expect(found({}, [])).toEqual([text]);
    expect(found({}, [reportedBinding({ indexed: false })])).toEqual([text]);
    expect(found({ slot: 0 }, [])).toEqual([text]);
  });

  it('finds a container that the kernel holds although the agent leaves it alone', () => {
    expect(found({ state: 'unbound', slot: 0 }, [reportedBinding()])).toEqual([
      `${CONTAINER}the kernel holds it, and the agent leaves it alone`,
    ]);
  });

  it.each([
    [{ slot: 9 }, '"slot" mismatch: agent="3", kernel="9"'],
    [{ generation: 9 }, '"generation" mismatch: agent="2", kernel="9"'],
    [{ slotCgroupId: 9n }, '"cgroup id" mismatch: agent="7", kernel="9"'],
    [{ mountNamespace: 9 }, '"mount namespace" mismatch: agent="4026532000", kernel="9"'],
    [{ policyId: 9 }, '"policy id" mismatch: agent="5", kernel="9"'],
    [{ learning: true }, '"learning" mismatch: agent="false", kernel="true"'],
    [{ mode: 'unknown' }, 'the kernel has no list for it, so it may start nothing'],
    [
      { namespaceIndexed: false },
      'the kernel does not find it by its mount namespace, so a process of it that leaves its cgroup is not checked',
    ],
  ] as const)('finds %o', (changed, text) => {
    expect(found({}, [reportedBinding(changed)])).toEqual([`${CONTAINER}${text}`]);
  });

  it('finds a second place that says to be of the same cgroup', () => {
    expect(found({}, [reportedBinding(), reportedBinding({ slot: 8, indexed: false })])).toEqual([
      `${CONTAINER}"second place" mismatch: agent="none", kernel="8"`,
    ]);
  });

  it('finds a place of a cgroup that no container has', () => {
    expect(found({}, [reportedBinding(), reportedBinding({ cgroupId: 99n, slot: 8 })])).toEqual([
      'the kernel holds place 8 for cgroup 99, which belongs to no container that the agent knows',
    ]);
  });

  it('finds a running container whose cgroup is another one by now, or gone', () => {
    expect(found({ presentCgroupId: 9n }, [reportedBinding()])).toEqual([
      `${CONTAINER}"cgroup id" mismatch: agent="7", node="9"`,
    ]);
    expect(found({ presentCgroupId: 0n }, [reportedBinding()])).toEqual([
      `${CONTAINER}"cgroup id" mismatch: agent="7", node="none"`,
    ]);
    expect(found({ presentCgroupId: 0n }, [reportedBinding()], [])).toEqual([]);
    const alone = { state: 'unbound', slot: 0, cgroupId: 0n, presentCgroupId: 0n } as const;
    expect(found(alone, [])).toEqual([]);
  });

  it('lets one that waits be held to what an agent before had bound', () => {
    expect(
      found({ state: 'waiting', policyId: 0 }, [reportedBinding({ policyId: 0, learning: true })]),
    ).toEqual([]);
  });
});
