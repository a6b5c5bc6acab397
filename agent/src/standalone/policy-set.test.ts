import type { PolicyMode, WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { describe, expect, it } from 'vitest';
import { createPolicySet } from './policy-set.ts';

function policy(name: string, mode: PolicyMode = 'monitor'): WorkloadPolicy {
  return {
    metadata: { name, namespace: 'shop', labels: new Map(), annotations: new Map(), ownerReferences: [] },
    spec: { mode, unlistedContainers: 'allow', binding: { autoBind: false }, rulesByContainer: new Map() },
  };
}

describe('a set of policies from files', () => {
  it('applies what is new or changed and removes what is in no file any more', () => {
    const set = createPolicySet();
    const [web, db] = [policy('web'), policy('db')];
    expect(set.update([{ file: 'a.yaml', policies: [web, db] }])).toEqual({
      apply: [
        { policy: web, file: 'a.yaml' },
        { policy: db, file: 'a.yaml' },
      ],
      ...{ remove: [], conflicts: [] },
    });
    const changed = policy('web', 'protect');
    const { apply, remove } = set.update([{ file: 'a.yaml', policies: [changed] }]);
    expect({ apply, remove }).toEqual({
      apply: [{ policy: changed, file: 'a.yaml' }],
      remove: ['shop/db'],
    });
    expect(set.update([{ file: 'a.yaml', policies: [] }]).remove).toEqual(['shop/web']);
    expect([...set.policies()]).toEqual([]);
  });

  it('leaves a policy to the file that was read first, and names both', () => {
    const set = createPolicySet();
    const first = policy('web');
    set.update([{ file: 'b.yaml', policies: [first] }]);
    const { apply, conflicts } = set.update([{ file: 'a.yaml', policies: [policy('web', 'protect')] }]);
    expect(apply).toEqual([]);
    expect(conflicts).toEqual([{ policy: 'shop/web', file: 'a.yaml', owner: 'b.yaml' }]);
    expect(set.policy('shop/web')).toBe(first);
  });

  it('lets the second file in when the first gives the policy up', () => {
    const set = createPolicySet();
    const second = policy('web', 'protect');
    set.update([{ file: 'b.yaml', policies: [policy('web')] }]);
    set.update([{ file: 'a.yaml', policies: [second] }]);
    expect(set.update([{ file: 'b.yaml', policies: [] }])).toEqual({
      apply: [{ policy: second, file: 'a.yaml' }],
      ...{ remove: [], conflicts: [] },
    });
  });

  it('moves a policy between files without removing it, in whatever order the files come', () => {
    for (const order of [0, 1]) {
      const set = createPolicySet();
      set.update([{ file: 'b.yaml', policies: [policy('web')] }]);
      const moved = policy('web');
      const changes = [
        { file: 'a.yaml', policies: [moved] },
        { file: 'b.yaml', policies: [] },
      ];
      const result = set.update(order === 0 ? changes : changes.reverse());
      expect(result).toEqual({ apply: [{ policy: moved, file: 'a.yaml' }], remove: [], conflicts: [] });
    }
  });

  it('an edit of the file that is not in force changes nothing', () => {
    const set = createPolicySet();
    set.update([{ file: 'a.yaml', policies: [policy('web')] }]);
    set.update([{ file: 'b.yaml', policies: [policy('web')] }]);
    const result = set.update([{ file: 'b.yaml', policies: [] }]);
    expect(result).toEqual({ apply: [], remove: [], conflicts: [] });
  });
});
