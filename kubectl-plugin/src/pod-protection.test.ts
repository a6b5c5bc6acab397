import { API_VERSION, POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { parseWorkloadPolicy, type WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { describe, expect, it } from 'vitest';
import { podProtections } from './pod-protection.ts';

function policy(status?: object): WorkloadPolicy {
  const parsed = parseWorkloadPolicy({
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicy',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { mode: 'protect' },
    ...(status && { status }),
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.value;
}

const pod = (more: { label?: string; node?: string; phase?: string } = {}) => ({
  metadata: {
    name: 'web-0',
    namespace: 'shop',
    labels: {
      ...(more.label !== undefined && { [POLICY_LABEL]: more.label }),
      'statefulset.kubernetes.io/pod-name': 'web-0',
    },
  },
  spec: { nodeName: more.node ?? 'n1' },
  status: { phase: more.phase ?? 'Running' },
});

function enforcement(
  given: Parameters<typeof pod>[0],
  status: object | undefined,
  agents?: readonly string[],
) {
  const [found] = podProtections({
    pods: [pod(given)],
    policies: new Map([['shop/web', policy(status)]]),
    agentNodes: agents && new Set(agents),
  });
  return found?.enforcement;
}

describe('podProtections', () => {
  const ready = { phase: 'Ready', totalNodes: 1, successfulNodes: 1 };

  it.each<[string, Parameters<typeof pod>[0], object | undefined, readonly string[] | undefined, string]>([
    ['all is well', { label: 'web' }, ready, ['n1'], 'enforced'],
    ['agents are unknown', { label: 'web' }, ready, undefined, 'enforced'],
    ['the pod has ended', { label: 'web', phase: 'Succeeded' }, ready, [], 'finished'],
    ['the pod has no node', { label: 'web', node: '' }, ready, [], 'pending'],
    ['the policy is another', { label: 'other' }, ready, ['n1'], 'notEnforced'],
    ['the label can name none', { label: 'A B' }, ready, ['n1'], 'notEnforced'],
    ['the agent is elsewhere', { label: 'web' }, ready, ['n2'], 'notEnforced'],
    ['nobody has reported', { label: 'web' }, undefined, ['n1'], 'notEnforced'],
    [
      'the node has trouble',
      { label: 'web' },
      { ...ready, nodesWithIssues: { n1: { code: 'Failed', message: 'full' } } },
      ['n1'],
      'notEnforced',
    ],
  ])('when %s', (_, given, status, agents, state) => {
    expect(enforcement(given, status, agents)?.state).toBe(state);
  });

  it('tells the workload, and leaves pods without a policy out', () => {
    const facts = { policies: new Map(), agentNodes: undefined };
    expect(podProtections({ ...facts, pods: [pod(), pod({ label: '' })] })).toEqual([]);
    expect(podProtections({ ...facts, pods: [pod({ label: 'web' })] })[0]).toMatchObject({
      workloadKind: 'StatefulSet',
      workloadName: 'web',
      policyName: 'web',
    });
  });
});
