import { describe, expect, it } from 'vitest';
import { PATHS_PER_POLICY, workloadLists, workloadPaths, workloadPolicies } from './workload.ts';

describe('the workload', () => {
  it('has 3,000 distinct paths of which three quarters take the smallest key', () => {
    const paths = workloadPaths();
    expect(new Set(paths).size).toBe(3_000);
    const short = paths.filter((path) => path.length <= 28).length;
    expect(short / paths.length).toBeCloseTo(0.75, 2);
    expect(paths.filter((path) => path.length > 60).length).toBeGreaterThan(0);
  });

  it('has no two equal lists, and is the same each time', () => {
    const lists = Array.from(workloadLists(10_000), (list) => list.toSorted().join('\0'));
    expect(new Set(lists).size).toBe(10_000);
    expect(Array.from(workloadLists(10), (list) => list.toSorted().join('\0'))).toEqual(lists.slice(0, 10));
  });

  it('is what the product accepts', () => {
    for (const { spec } of workloadPolicies(20)) {
      const sizes = Array.from(
        spec.rulesByContainer.values(),
        ({ executables }) => executables.allowed.length,
      );
      expect(sizes).toEqual([PATHS_PER_POLICY]);
    }
  });
});
