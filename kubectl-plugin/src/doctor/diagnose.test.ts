import { createAuthority } from '@runtime-enforcer/certs/authority';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { describe, expect, it } from 'vitest';
import { WORKLOADS } from '../cluster/workloads.ts';
import { diagnose } from './diagnose.ts';
import type { ClusterFacts } from './facts.ts';
import type { Known } from './finding.ts';

const NOW = new Date('2026-06-01T00:00:00Z');
const DAY_MS = 86_400_000;

const known = <T>(value: T): Known<T> => ({ ok: true, value });
const READY = { conditions: [{ type: 'Ready', status: 'True' }] };

const pod = (name: string, node: string, status: object = READY) => ({
  metadata: { name, namespace: 'runtime-enforcer' },
  spec: { nodeName: node },
  status,
});
const node = (name: string, runtime = 'containerd://2.2.1') => ({
  metadata: { name },
  status: { nodeInfo: { containerRuntimeVersion: runtime } },
});
const crd = (plural: string) => ({
  metadata: { name: `${plural}.runtimeenforcer.kubewarden.io` },
  spec: { names: { plural }, versions: [{ name: 'v1alpha1', served: true }] },
  status: { conditions: [{ type: 'Established', status: 'True' }] },
});
async function caBundle(daysLeft: number): Promise<string> {
  const life = { now: new Date(NOW.getTime() - DAY_MS), validForMs: (daysLeft + 1) * DAY_MS };
  const { certificate } = await createAuthority({ commonName: 'ca', ...life });
  return Buffer.from(certificate).toString('base64');
}
const webhook = (ca: string, more: object = {}) => ({
  metadata: { name: 'hooks' },
  webhooks: [{ name: 'a.b.c', clientConfig: { caBundle: ca }, ...more }],
});

const METRICS = [
  'runtime_enforcer_attachment_info{kind="lsm",programs="1",adopted="no",kernel="6.12"} 1',
  'runtime_enforcer_degraded 0',
  'runtime_enforcer_recursion_misses_total 0',
  'runtime_enforcer_override_info{override="none"} 1',
  'runtime_enforcer_role{role="owner"} 1',
  'runtime_enforcer_nri_connected 1',
  'runtime_enforcer_attached 1',
].join('\n');

async function healthy(): Promise<ClusterFacts> {
  const ca = await caBundle(300);
  return {
    nowMs: NOW.getTime(),
    customResources: known([crd('workloadpolicies'), crd('workloadpolicyproposals')]),
    webhooks: known([webhook(ca, { reinvocationPolicy: 'Never' }), webhook(ca)]),
    admissionPolicies: known([{ metadata: { name: 'pod-policy' } }]),
    agents: known([pod('agent-1', 'n1')]),
    controllers: known([pod('controller-1', 'n1')]),
    nodes: known([node('n1')]),
    agentMetrics: new Map([['runtime-enforcer/agent-1', known(METRICS)]]),
    secrets: known([]),
    policies: known([]),
    unreadablePolicies: new Map(),
    proposals: known([]),
    pods: known([]),
    workloads: known([]),
  };
}

const findings = async (change: Partial<ClusterFacts>) => diagnose({ ...(await healthy()), ...change });
const metrics = (from: string, to: string): Partial<ClusterFacts> => ({
  agentMetrics: new Map([['runtime-enforcer/agent-1', known(METRICS.replace(from, to))]]),
});

describe('diagnose', () => {
  it('finds nothing in a healthy cluster', async () => {
    expect(await findings({})).toEqual([]);
  });

  it.each<[string, Partial<ClusterFacts>, string, string]>([
    [
      'a missing custom resource',
      { customResources: known([crd('workloadpolicies')]) },
      'error',
      'is not installed',
    ],
    ['no controller', { controllers: known([]) }, 'error', 'no controller runs'],
    [
      'a controller that is not ready',
      { controllers: known([pod('c', 'n1', {})]) },
      'error',
      'no controller is ready',
    ],
    ['no webhooks', { webhooks: known([]) }, 'warning', 'the product has none'],
    ['no admission policy', { admissionPolicies: known([]) }, 'warning', 'keeps the policy label'],
    ['no agents', { agents: known([]) }, 'error', 'no agent runs'],
    [
      'an agent that is not ready',
      { agents: known([pod('agent-1', 'n1', { phase: 'Pending' })]) },
      'error',
      'not ready (Pending)',
    ],
    ['a node without one', { nodes: known([node('n1'), node('n2')]) }, 'error', 'it has no agent'],
    [
      'an old runtime',
      { nodes: known([node('n1', 'containerd://1.7.24')]) },
      'note',
      'bound only afterwards',
    ],
    ['a program that was taken off', metrics('attached 1', 'attached 0'), 'error', 'took the program off'],
    ['a runtime that does not ask', metrics('nri_connected 1', 'nri_connected 0'), 'error', 'not connected'],
    ['a degraded kernel', metrics('degraded 0', 'degraded 1'), 'warning', 'lsm on 6.12'],
    ['skipped checks', metrics('misses_total 0', 'misses_total 7'), 'warning', 'skipped the program 7 times'],
    [
      'a node that somebody released',
      {
        agents: known([pod('agent-1', 'n1', { phase: 'Running' })]),
        ...metrics('"owner"} 1', '"released"} 1'),
      },
      'error',
      'taken all enforcement off the node',
    ],
    [
      'an agent that waits for another to go',
      {
        agents: known([pod('agent-1', 'n1', { phase: 'Running' })]),
        ...metrics('"owner"} 1', '"standby"} 1'),
      },
      'error',
      'it is not ready (Running)',
    ],
    ['an override', metrics('"none"', '"monitor"'), 'warning', 'set all its policies to monitor'],
    [
      'a fact that may not be seen',
      { secrets: { ok: false, why: 'forbidden' } },
      'warning',
      'could not be looked at: forbidden',
    ],
  ])('finds %s', async (_, change, severity, message) => {
    const found = (await findings(change)).find((finding) => finding.message.includes(message));
    expect(found?.severity).toBe(severity);
  });

  it.each([
    [300, undefined],
    [3, 'warning'],
    [-1, 'error'],
  ])('judges a certificate with %d days left', async (days, severity) => {
    const ca = await caBundle(days);
    const hooks = known([webhook(ca, { reinvocationPolicy: 'Never' }), webhook(ca)]);
    expect((await findings({ webhooks: hooks }))[0]?.severity).toBe(severity);
  });

  it('says that a CA is missing, or is none', async () => {
    const hooks = (ca: string) => known([webhook(ca, { reinvocationPolicy: 'Never' }), webhook(ca)]);
    expect((await findings({ webhooks: hooks('') }))[0]?.message).toContain('has no CA');
    expect((await findings({ webhooks: hooks('eA==') }))[0]?.message).toContain('not a certificate');
  });

  it.each<[string, Partial<ClusterFacts>, string]>([
    ['one that can be promoted', {}, 'kubectl runtime-enforcer promote gone -n shop'],
    ['none', { proposals: known([]) }, 'kubectl runtime-enforcer unbind deployment/web -n shop'],
    [
      'none, and no workload that binds it',
      { proposals: known([]), workloads: known([]) },
      'kubectl delete pod web-abc-x2x4l -n shop',
    ],
  ])('repairs a pod whose policy is not there by the proposal of its name: %s', async (_, more, repair) => {
    const template = { metadata: { labels: { [POLICY_LABEL]: 'gone' } } };
    const web = { metadata: { name: 'web', namespace: 'shop' }, spec: { template } };
    const [deployments] = WORKLOADS;
    if (deployments === undefined) throw new Error('there are no kinds of workloads');
    const enforcement = { state: 'notEnforced', why: 'the policy does not exist' } as const;
    const found = await findings({
      proposals: known([
        { metadata: { name: 'gone', namespace: 'other' } },
        { metadata: { name: 'gone', namespace: 'shop' } },
      ]),
      workloads: known([{ resource: deployments, object: web }]),
      pods: known([
        {
          ...{ namespace: 'shop', podName: 'web-abc-x2x4l', nodeName: 'n1', policyName: 'gone' },
          ...{ workloadKind: 'Deployment', workloadName: 'web', policy: undefined, enforcement },
        },
      ]),
      ...more,
    });
    expect(found.map((finding) => finding.repair)).toEqual([repair]);
  });

  it('tells of pods of one workload together, and where their agents are to be looked for', async () => {
    const enforcement = { state: 'notEnforced', why: 'no agent is ready on the node' } as const;
    const web = {
      ...{ namespace: 'shop', nodeName: 'n2', policyName: 'web', enforcement },
      ...{ workloadKind: 'Deployment', workloadName: 'web', policy: { spec: {} } as WorkloadPolicy },
    };
    const found = await findings({
      pods: known([
        { ...web, podName: 'web-1' },
        { ...web, podName: 'other-1', workloadName: 'other' },
        { ...web, podName: 'web-2' },
      ]),
    });
    expect(found.map(({ subject, message }) => `${subject}: ${message}`)).toEqual([
      '2 pods of Deployment shop/web: they name policy "web" and are not enforced: no agent is ready on the node',
      'Pod shop/other-1: it names policy "web" and is not enforced: no agent is ready on the node',
    ]);
    expect(found[0]?.repair).toBe('kubectl get pods -A -l app.kubernetes.io/component=agent -o wide');
  });

  it('tells of a policy that cannot be read, and not that it does not exist', async () => {
    const enforcement = { state: 'notEnforced', why: 'the policy does not exist' } as const;
    const found = await findings({
      unreadablePolicies: new Map([['shop/web', 'WorkloadPolicy "web" cannot be read: spec.mode: "x"']]),
      pods: known([
        {
          ...{ namespace: 'shop', podName: 'web-0', nodeName: 'n1', policyName: 'web', policy: undefined },
          ...{ workloadKind: 'Pod', workloadName: 'web-0', enforcement },
        },
      ]),
    });
    expect(found).toEqual([
      {
        ...{ check: 'policies', severity: 'error', subject: 'WorkloadPolicy shop/web' },
        message: 'WorkloadPolicy "web" cannot be read: spec.mode: "x"',
        repair: 'kubectl edit workloadpolicy web -n shop',
      },
    ]);
  });

  it('puts the worst first', async () => {
    const all = await findings({
      controllers: known([]),
      webhooks: known([]),
      nodes: known([node('n1', 'containerd://1.7.0')]),
    });
    expect(all.map(({ severity }) => severity)).toEqual(['error', 'warning', 'warning', 'note']);
  });
});
