import { describe, expect, it } from 'vitest';
import { EVIDENCE_ANNOTATION, PROMOTED_FROM_LABEL } from './keys.ts';
import { decidePromotion, policyExists, policyRefused, promote } from './promotion.ts';
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

describe('decidePromotion', () => {
  const object = (name = 'deploy-web', spec: unknown = { rulesByContainer: { app: {} } }) => ({
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicyProposal',
    metadata: { name, namespace: 'shop', uid: 'u1', managedFields: [{}] },
    spec,
  });

  it('makes the policy, with its evidence', () => {
    const decided = decidePromotion(object(), 'protect');
    if (decided.action !== 'create') throw new Error(JSON.stringify(decided));
    expect(decided.policy.spec.mode).toBe('protect');
    expect([...decided.policy.metadata.annotations.keys()]).toEqual([EVIDENCE_ANNOTATION]);
    expect(parseWorkloadPolicy(workloadPolicyObject(decided.policy)).ok).toBe(true);
  });

  it.each([
    ['a mode', object(), 'Protect', 'InvalidMode', 'expected monitor or protect'],
    ['no mode', object(), '', 'InvalidMode', 'remove the label'],
    ['a name', object('x'.repeat(64)), 'monitor', 'NameTooLong', 'a shorter name'],
    ['a field', object('web', { rules: {} }), 'monitor', 'InvalidProposal', 'spec.rules'],
    ['nothing at all', null, 'monitor', 'InvalidProposal', 'null'],
  ])('says what is wrong with %s and what to do', (_, input, label, reason, words) => {
    expect(decidePromotion(input, label)).toMatchObject({
      action: 'fail',
      failure: { reason, message: expect.stringContaining(words) as string },
    });
  });

  it('keeps every message within the bounds of a condition, and printable', () => {
    for (const { message } of [
      policyRefused(`\u202e${'𝄞'.repeat(2_000)}`),
      policyExists('x'.repeat(5_000)),
    ]) {
      expect(Array.from(message).length).toBeLessThanOrEqual(1_024);
      expect(message).not.toMatch(/\p{Cf}/u);
    }
  });
});
