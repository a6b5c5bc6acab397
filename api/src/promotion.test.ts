import { describe, expect, it } from 'vitest';
import { PROMOTED_FROM_LABEL } from './keys.ts';
import { promote } from './promotion.ts';
import { workloadPolicyObject } from './resource-object.ts';
import { parseWorkloadPolicy } from './workload-policy.ts';
import { parseWorkloadPolicyProposal, type WorkloadPolicyProposal } from './workload-policy-proposal.ts';

function proposal(name: string): WorkloadPolicyProposal {
  const parsed = parseWorkloadPolicyProposal({
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicyProposal',
    metadata: {
      name,
      namespace: 'shop',
      uid: '1',
      labels: { 'runtimeenforcer.kubewarden.io/promote': 'protect', team: 'a' },
      annotations: { note: 'x' },
      ownerReferences: [{ kind: 'Deployment', name: 'web' }],
    },
    spec: {
      rulesByContainer: {
        app: { executables: { allowed: ['/z', '/a', String.raw`/\xff`], otherMountNamespaces: 'unchecked' } },
        init: {},
      },
    },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.value;
}

describe('promote', () => {
  it.each(['monitor', 'protect'] as const)(
    'makes a %s policy of the same name and rules, and nothing else',
    (mode) => {
      const from = proposal('deploy-web');
      const promoted = promote(from, mode);
      if (!promoted.ok) throw new Error(JSON.stringify(promoted.errors));
      const { metadata, spec } = promoted.value;
      expect(spec.rulesByContainer).toEqual(from.spec.rulesByContainer);
      expect(spec.rulesByContainer.get('app')?.executables.allowed).toEqual(['/z', '/a', String.raw`/\xff`]);
      expect({ ...spec, rulesByContainer: undefined }).toEqual({
        mode,
        unlistedContainers: 'allow',
        binding: { autoBind: false },
        rulesByContainer: undefined,
      });
      expect(metadata).toEqual({
        name: 'deploy-web',
        namespace: 'shop',
        labels: new Map([[PROMOTED_FROM_LABEL, 'deploy-web']]),
        annotations: new Map(),
        ownerReferences: [],
      });
      expect(parseWorkloadPolicy(workloadPolicyObject(promoted.value)).ok).toBe(true);
    },
  );

  it('needs a name that a label can hold', () => {
    expect(promote(proposal('x'.repeat(63)), 'monitor').ok).toBe(true);
    expect(promote(proposal('x'.repeat(64)), 'monitor')).toMatchObject({
      errors: [{ path: 'metadata.name', message: expect.stringContaining('64 characters') as string }],
    });
  });
});
