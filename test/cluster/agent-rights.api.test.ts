import { createOwnDaemonSet } from '@runtime-enforcer/agent/cluster/daemon-set';
import { createPodNotices } from '@runtime-enforcer/agent/cluster/pod-notices';
import { createPolicyWatch } from '@runtime-enforcer/agent/cluster/policy-watch';
import { createFakeKernel, fakeReporting } from '@runtime-enforcer/agent/node/fake-kernel';
import { createPolicyEffect } from '@runtime-enforcer/agent/node/policy-effect';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import {
  collectionPath,
  EVENTS,
  NAMESPACES,
  objectPath,
  PODS,
  type Resource,
} from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chartObjects, createAll } from '../controller/chart-objects.ts';
import { objectOf } from '../controller/proposals.ts';
import { type ControlPlane, type ServiceAccountClient, startControlPlane } from './control-plane.ts';
import { installCustomResources } from './custom-resources.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { allowedIn, localLearner } from './local-learner.ts';
import { type RevocableRights, revocableRights } from './revocable-rights.ts';
import { syntheticContainer } from './synthetic-exec.ts';
import {
  DAEMON_SETS,
  ownedBy,
  podTemplate,
  selecting,
  type SyntheticWorkloads,
  syntheticWorkloads,
  type WorkloadPrefix,
} from './synthetic-workloads.ts';
import {
  testsWithoutOneRight,
  unneededRights,
  type VisibleFunction,
  worksWithin,
} from './visible-functions.ts';

const OWN = 'runtime-enforcer';
const ACCOUNT = 'runtime-enforcer-agent';
const NAMESPACE = 'shop';
const TIMINGS = { backOff: { baseMs: 50, maxMs: 500, jitter: 0.5 } };

let plane: ControlPlane;
let proxy: FaultProxy;
let account: ServiceAccountClient;
let rights: RevocableRights;
let workloads: SyntheticWorkloads;
let next = 0;

beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await installCustomResources(client);
  workloads = syntheticWorkloads(client);
  for (const name of [NAMESPACE, OWN]) await plane.serviceAccount(name, 'default');
  await client.request({
    method: 'PATCH',
    path: objectPath({ resource: NAMESPACES, name: NAMESPACE }),
    patchType: 'application/merge-patch+json',
    body: { metadata: { labels: { learn: 'yes' } } },
  });
  const objects = await chartObjects('agent/rbac.yaml');
  await createAll(client, objects);
  proxy = await startFaultProxy(plane);
  account = await plane.serviceAccount(OWN, ACCOUNT, { server: proxy.url });
  const roles = objects.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');
  rights = revocableRights(client, { namespace: OWN, name: ACCOUNT }, roles);
});
afterAll(async () => {
  await proxy.stop();
  await plane.stop();
});

const create = async (resource: Resource, body: object, namespace = NAMESPACE): Promise<KubeObject> =>
  await workloads.create(resource, body, namespace);

const fresh = (): string => `app-${++next}`;
/** Whether what a pod of a workload runs reaches its proposal. */
async function isLearned(kind: WorkloadPrefix, exists = false): Promise<boolean> {
  const app = fresh();
  const { metadata } = await workloads.pod(NAMESPACE, app, kind);
  const name = `${kind}-${app}`;
  if (exists) await proposalOfOther(name);
  const { learner, exec } = localLearner(account.client, '{"matchLabels":{"learn":"yes"}}');
  await learner.start();
  exec({ namespace: NAMESPACE, podName: metadata.name, podUid: metadata.uid ?? '' }, '/bin/server');
  try {
    return await worksWithin(async () => {
      const proposal = await objectOf(plane.admin.client, WORKLOAD_POLICY_PROPOSALS, NAMESPACE, name);
      return allowedIn(proposal).includes('/bin/server');
    });
  } finally {
    await learner.stop();
  }
}

/** As the agent of another node has made it. */
async function proposalOfOther(name: string): Promise<void> {
  const { group, version } = WORKLOAD_POLICY_PROPOSALS;
  const rulesByContainer = { main: { executables: { allowed: ['/bin/other'] } } };
  await create(WORKLOAD_POLICY_PROPOSALS, {
    apiVersion: `${group}/${version}`,
    kind: 'WorkloadPolicyProposal',
    metadata: { name },
    spec: { rulesByContainer },
  });
}

async function isEnforced(): Promise<boolean> {
  const { log, counters } = fakeReporting();
  const { table, binder } = createFakeKernel();
  const watch = createPolicyWatch({
    ...{ client: account.client, table, log, timings: TIMINGS },
    effect: createPolicyEffect({ table, binder, log, counters, onBoundLate: () => undefined }),
    failures: () => undefined,
  });
  watch.start();
  const name = fresh();
  const { group, version } = WORKLOAD_POLICIES;
  const metadata = { name };
  const spec = { mode: 'protect' };
  await create(WORKLOAD_POLICIES, {
    apiVersion: `${group}/${version}`,
    kind: 'WorkloadPolicy',
    metadata,
    spec,
  });
  try {
    return await worksWithin(() => table.state(`${NAMESPACE}/${name}`)?.state === 'ready');
  } finally {
    await watch.stop();
  }
}

/** How often the Event says that a container was kept from starting, which it was twice. */
async function timesTold(): Promise<number> {
  const podName = fresh();
  const notices = createPodNotices({
    ...{ client: account.client, nodeName: 'node-1', podUid: () => undefined },
    log: fakeReporting().log,
  });
  const container = syntheticContainer({ namespace: NAMESPACE, podName, podUid: '' });
  for (let time = 0; time < 2; time++) notices.waiting?.(container, 'its policy is not there');
  await notices.flush();
  await notices.stop();
  const { items } = (await plane.admin.client.request({
    path: collectionPath(EVENTS, NAMESPACE),
    query: { fieldSelector: `involvedObject.name=${podName}` },
  })) as { readonly items: readonly { readonly count: number }[] };
  return Math.max(0, ...items.map(({ count }) => count));
}

/** What an agent knows of the DaemonSet that it belongs to. */
async function ownDaemonSet(before: 'there' | 'deleted without rights'): Promise<boolean> {
  const name = fresh();
  const daemonSet = await create(DAEMON_SETS, { metadata: { name }, spec: selecting(name) }, OWN);
  const metadata = { name: `${name}-x`, ...ownedBy('apps/v1', 'DaemonSet', daemonSet) };
  await create(PODS, { ...podTemplate(name), metadata }, OWN);
  const own = createOwnDaemonSet({
    ...{ client: account.client, ownPod: { name: metadata.name, namespace: OWN } },
    ...{ log: fakeReporting().log, failures: () => undefined, timings: TIMINGS },
  });
  const state = async () => await own.state(AbortSignal.timeout(1_000));
  own.start();
  try {
    if (before === 'there') return await worksWithin(async () => (await state()) === 'present');
    await worksWithin(async () => (await state()) === 'present');
    const followed = `watch=true`;
    await worksWithin(() => proxy.requests.some((each) => each.includes(name) && each.includes(followed)));
    const path = objectPath({ resource: DAEMON_SETS, namespace: OWN, name });
    // Its own rights went with it.
    proxy.setFault((request) => (request === `GET ${path}` ? { status: 403 } : undefined));
    await plane.admin.client.request({ method: 'DELETE', path });
    return await worksWithin(async () => (await state()) === 'deleted');
  } finally {
    proxy.setFault(undefined);
    await own.stop();
  }
}

/** What users see, by the rights without which it fails. Where both are named, older API servers need both. */
const FUNCTIONS: readonly VisibleFunction[] = [
  ['a policy is enforced on the nodes', 'list,watch workloadpolicies', isEnforced],
  [
    'a workload without a policy is proposed one',
    'get workloadpolicies',
    async () => await isLearned('deploy'),
  ],
  [
    'what a workload runs is proposed',
    'create workloadpolicyproposals',
    async () => await isLearned('deploy'),
  ],
  [
    'what pods on further nodes run is added to a proposal',
    'get workloadpolicyproposals',
    async () => await isLearned('deploy', true),
  ],
  [
    'a path is added to a proposal',
    'update workloadpolicyproposals',
    async () => await isLearned('deploy', true),
  ],
  [
    'a proposal is learned into until it is to be promoted',
    'list,watch workloadpolicyproposals',
    async () => await isLearned('deploy'),
  ],
  ['namespaces are learned by their labels', 'list,watch namespaces', async () => await isLearned('deploy')],
  ['pods are learned by what owns them', 'get pods', async () => await isLearned('deploy')],
  ['pods of Deployments are learned', 'get deployments', async () => await isLearned('deploy')],
  ['pods of ReplicaSets are learned', 'get replicasets', async () => await isLearned('deploy')],
  ['pods of StatefulSets are learned', 'get statefulsets', async () => await isLearned('sts')],
  ['pods of DaemonSets are learned', 'get daemonsets', async () => await isLearned('ds')],
  ['pods of CronJobs are learned', 'get cronjobs', async () => await isLearned('cronjob')],
  ['pods of Jobs are learned', 'get jobs', async () => await isLearned('cronjob')],
  ['Events tell of containers on their pods', 'create events', async () => (await timesTold()) > 0],
  ['an Event counts what happens again', 'patch events', async () => (await timesTold()) > 1],
  [
    'a restarted agent goes on enforcing where its DaemonSet is there',
    'get daemonsets',
    async () => await ownDaemonSet('there'),
  ],
  [
    'an uninstalled product denies nothing, also when its rights went first',
    'list,watch daemonsets',
    async () => await ownDaemonSet('deleted without rights'),
  ],
];

describe('without one right of the agent', () => {
  it('there is a function for each verb on each kind of object', () => {
    expect(unneededRights(FUNCTIONS, rights)).toEqual([]);
  });

  testsWithoutOneRight(FUNCTIONS, () => rights);
});
