import { describe, expect, it } from 'vitest';
import { formatFieldError } from './field-error.ts';
import { API_VERSION, WORKLOAD_POLICY_KIND, WORKLOAD_POLICY_PROPOSAL_KIND } from './keys.ts';
import { parseWorkloadPolicy } from './workload-policy.ts';
import { parseWorkloadPolicyProposal } from './workload-policy-proposal.ts';

const policy = (more: Record<string, unknown>) => ({
  apiVersion: API_VERSION,
  kind: WORKLOAD_POLICY_KIND,
  metadata: { name: 'web' },
  spec: { mode: 'monitor' },
  ...more,
});

describe('parseWorkloadPolicy', () => {
  it('fills in every default', () => {
    const parsed = parseWorkloadPolicy(
      policy({ spec: { mode: 'protect', rulesByContainer: { app: {} } }, status: {} }),
    );
    expect(parsed).toEqual({
      ok: true,
      value: {
        metadata: {
          name: 'web',
          namespace: 'default',
          labels: new Map(),
          annotations: new Map(),
          ownerReferences: [],
        },
        spec: {
          mode: 'protect',
          unlistedContainers: 'allow',
          binding: { autoBind: false },
          rulesByContainer: new Map([
            ['app', { executables: { allowed: [], otherMountNamespaces: 'deny' } }],
          ]),
        },
        status: {
          totalNodes: 0,
          successfulNodes: 0,
          failedNodes: 0,
          transitioningNodes: 0,
          nodesWithIssues: new Map(),
          nodesTransitioning: [],
          violationCount: 0,
          activeViolationCount: 0,
          violations: [],
          acknowledgedViolations: [],
          conditions: [],
          mergedFrom: [],
        },
      },
    });
  });

  it('keeps one of two writings of a path, in the form that the product writes', () => {
    const allowed = [String.raw`/na\xc3\xafve`, '/naïve', String.raw`/\xFF`];
    const parsed = parseWorkloadPolicy(
      policy({ spec: { mode: 'monitor', rulesByContainer: { app: { executables: { allowed } } } } }),
    );
    expect(parsed.ok && parsed.value.spec.rulesByContainer.get('app')?.executables.allowed).toEqual([
      '/naïve',
      String.raw`/\xff`,
    ]);
  });

  it('keeps what it knows of the metadata, and drops what is the API server’s own', () => {
    const metadata = {
      name: 'web',
      namespace: 'shop',
      uid: 'u',
      resourceVersion: '7',
      generation: 2,
      creationTimestamp: '2026-01-31T12:00:00Z',
      labels: { constructor: 'x' },
      annotations: { a: 'b' },
      ownerReferences: [
        { kind: 'Deployment', name: 'web', apiVersion: 'apps/v1', uid: 'u', controller: true },
      ],
    };
    const parsed = parseWorkloadPolicy(
      policy({ metadata: { ...metadata, managedFields: [{}], finalizers: ['x'] } }),
    );
    expect(parsed.ok && parsed.value.metadata).toEqual({
      ...metadata,
      labels: new Map([['constructor', 'x']]),
      annotations: new Map([['a', 'b']]),
    });
  });

  it.each<[unknown, string]>([
    [undefined, 'a value of type undefined stands here'],
    [null, 'nothing (null) stands here'],
    [[], 'a list stands here'],
    [policy({ metadata: {} }), 'metadata.name: the field is missing'],
    [policy({ metadata: { name: 'Web' } }), 'metadata.name: "Web" is not a name'],
    [policy({ metadata: { name: 'x'.repeat(64) } }), 'has 64 characters; expected at most 63'],
    [policy({ metadata: { name: 'web', namespace: 'a.b' } }), 'metadata.namespace: "a.b" is not a DNS label'],
    [policy({ metadata: { name: 'web', lables: {} } }), 'metadata.lables: the field is unknown'],
    [policy({ metadata: { name: 'web', labels: { a: 1 } } }), 'metadata.labels.a: 1 stands here'],
    [
      policy({ apiVersion: 'security.rancher.io/v1alpha1' }),
      `apiVersion: "security.rancher.io/v1alpha1" is not known; expected ${API_VERSION}`,
    ],
    [policy({ kind: 'x' }), 'kind: "x" is not known; expected WorkloadPolicy'],
    [
      policy({ status: { phase: 'ready' } }),
      'status.phase: "ready" is not known; expected one of Ready, Failed',
    ],
  ])('refuses %j', (input, error) => {
    const parsed = parseWorkloadPolicy(input);
    expect(parsed.ok ? [] : parsed.errors.map(formatFieldError)).toEqual([expect.stringContaining(error)]);
  });
});

describe('parseWorkloadPolicyProposal', () => {
  const proposal = { apiVersion: API_VERSION, kind: WORKLOAD_POLICY_PROPOSAL_KIND, spec: {} };

  it('takes a name that is too long for a policy', () => {
    expect(parseWorkloadPolicyProposal({ ...proposal, metadata: { name: 'x'.repeat(253) } }).ok).toBe(true);
    expect(parseWorkloadPolicyProposal({ ...proposal, metadata: { name: 'x'.repeat(254) } }).ok).toBe(false);
  });

  it('has no mode', () => {
    const parsed = parseWorkloadPolicyProposal({
      ...proposal,
      metadata: { name: 'web' },
      spec: { mode: 'monitor' },
    });
    expect(parsed).toMatchObject({
      ok: false,
      errors: [{ path: 'spec.mode', message: 'the field is unknown' }],
    });
  });
});
