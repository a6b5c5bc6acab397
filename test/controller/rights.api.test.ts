import { readFile } from 'node:fs/promises';
import { ACKNOWLEDGE_ANNOTATION_PREFIX, POLICY_LABEL, PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { leaseRecordOf } from '@runtime-enforcer/kube/lease-record';
import { LEASES } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { gives, type RevocableRights, revocableRights, rightOf } from '../cluster/revocable-rights.ts';
import { testsWithoutOneRight, type VisibleFunction, worksWithin } from '../cluster/visible-functions.ts';
import { chartObjects, createAll } from './chart-objects.ts';
import {
  CONTROLLER_ACCOUNT,
  CONTROLLER_NAMESPACE,
  type ControllerPlace,
  controllerPlace,
  type ControllerProcess,
  readMetrics,
} from './controller-process.ts';
import { directRequest } from './direct-request.ts';
import { objectOf } from './proposals.ts';

const NAMESPACE = 'shop';
const ENDING = 'ending';
const API_VERSION = 'runtimeenforcer.kubewarden.io/v1alpha1';
const GROUP_PATH = `/apis/${API_VERSION}/namespaces`;
/** How long a controller may take to start and to lead. */
const ELECTED_MS = 12_000;
const LEASE = '4e873589.rancher.io';

let plane: ControlPlane;
let place: ControllerPlace;
let controller: ControllerProcess;
let rights: RevocableRights;

beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await installCustomResources(client);
  for (const name of [NAMESPACE, ENDING]) await plane.serviceAccount(name, 'default');
  place = await controllerPlace(plane);
  controller = await place.start({ args: ['--wp-status-reconciler-update-interval=100ms'] });
  await controller.ready();
  await place.installWebhooks(controller);
  const roles = (await chartObjects('controller/rbac.yaml')).filter(
    ({ kind, metadata }) =>
      kind === 'Role' || (kind === 'ClusterRole' && metadata.name === CONTROLLER_ACCOUNT),
  );
  const account = { namespace: CONTROLLER_NAMESPACE, name: CONTROLLER_ACCOUNT };
  rights = revocableRights(client, account, roles);
  const spec = { containers: [{ name: 'app', image: 'app' }], restartPolicy: 'Never' };
  const template = { metadata: { labels: { app: 'x' } }, spec };
  await send('POST', `/apis/batch/v1/namespaces/${NAMESPACE}/jobs`, {
    metadata: { name: 'once' },
    spec: { template },
  });
  await send('POST', `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, {
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: { app: 'x' } },
      template: { ...template, spec: { ...spec, restartPolicy: 'Always' } },
    },
  });
  // While policies can still be made there: some that a pod uses.
  for (const name of ['used-1', 'used-2', 'used-3']) {
    await policy(name, ENDING);
    const metadata = { name, labels: { [POLICY_LABEL]: name } };
    await send('POST', `/api/v1/namespaces/${ENDING}/pods`, { metadata, spec });
  }
  await send('DELETE', `/api/v1/namespaces/${ENDING}`);
  await createAll(client, await readerBinding());
});
afterAll(async () => {
  await place.stop();
  await plane.stop();
});

const send = async (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) =>
  await directRequest(plane, { method, path, ...(body !== undefined && { body }) });

async function readerBinding(): Promise<KubeObject[]> {
  await plane.serviceAccount('monitoring', 'prometheus');
  const apiGroup = 'rbac.authorization.k8s.io';
  return [
    {
      apiVersion: `${apiGroup}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'prometheus' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'runtime-enforcer-metrics-reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace: 'monitoring' }],
    },
  ];
}

async function policy(name: string, namespace = NAMESPACE, annotations: object = {}): Promise<void> {
  await send('POST', `${GROUP_PATH}/${namespace}/workloadpolicies`, {
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicy',
    metadata: { name, annotations },
    spec: { mode: 'monitor' },
  });
}

async function propose(name: string, kind: 'Deployment' | 'Job', labels: object = {}): Promise<number> {
  const owner = { apiVersion: '', kind, name: kind === 'Job' ? 'once' : 'web', uid: '' };
  const { status } = await send('POST', `${GROUP_PATH}/${NAMESPACE}/workloadpolicyproposals`, {
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicyProposal',
    metadata: { name, labels, ownerReferences: [owner] },
    spec: {},
  });
  return status;
}

const promote = async (name: string) => await propose(name, 'Deployment', { [PROMOTE_LABEL]: 'monitor' });
const policyPath = (name: string) => `${GROUP_PATH}/${NAMESPACE}/workloadpolicies/${name}`;
const proposalPath = (name: string) => `${GROUP_PATH}/${NAMESPACE}/workloadpolicyproposals/${name}`;

/** Whether a further controller, which is one of several, takes the lease that nobody holds. */
async function isElected(): Promise<boolean> {
  const candidate = await place.start({ args: ['--leader-elect'] });
  try {
    return await worksWithin(async () => {
      const lease = await objectOf(plane.admin.client, LEASES, CONTROLLER_NAMESPACE, LEASE);
      return lease !== undefined && leaseRecordOf(lease).holder !== '';
    }, ELECTED_MS);
  } finally {
    await candidate.stop();
  }
}

let next = 0;
const fresh = () => `deploy-${++next}`;
let ending = 0;

/** What users see, by the right without which it fails. */
const FUNCTIONS: readonly VisibleFunction[] = [
  [
    'a proposal becomes a policy',
    'create workloadpolicies',
    async () => {
      const name = fresh();
      await promote(name);
      return await worksWithin(async () => (await send('GET', policyPath(name))).status === 200);
    },
  ],
  [
    'a promoted proposal is removed',
    'delete workloadpolicyproposals',
    async () => {
      const name = fresh();
      await promote(name);
      return await worksWithin(async () => (await send('GET', proposalPath(name))).status === 404);
    },
  ],
  [
    'a proposal tells why it is not promoted',
    'update workloadpolicyproposals/status',
    async () => {
      const name = `deploy-${++next}-${'x'.repeat(60)}`;
      await promote(name);
      return await worksWithin(
        async () => (await send('GET', proposalPath(name))).body['status'] !== undefined,
      );
    },
  ],
  [
    'the status of a policy tells how it is',
    'update workloadpolicies/status',
    async () => {
      const name = fresh();
      await policy(name);
      return await worksWithin(
        async () => (await send('GET', policyPath(name))).body['status'] !== undefined,
      );
    },
  ],
  [
    'an acknowledgement is taken off a policy when it was seen',
    'patch workloadpolicies',
    async () => {
      const name = fresh();
      await policy(name, NAMESPACE, { [`${ACKNOWLEDGE_ANNOTATION_PREFIX}1`]: 'known' });
      return await worksWithin(async () => {
        const { metadata } = (await send('GET', policyPath(name))).body as unknown as KubeObject;
        return metadata.annotations?.[`${ACKNOWLEDGE_ANNOTATION_PREFIX}1`] === undefined;
      });
    },
  ],
  [
    'agents propose for Deployments, DaemonSets, ReplicaSets and StatefulSets',
    'get deployments',
    async () => (await propose(fresh(), 'Deployment')) === 201,
  ],
  ['agents propose for Jobs and CronJobs', 'get jobs', async () => (await propose(fresh(), 'Job')) === 201],
  [
    'a policy that no pod uses can be deleted',
    'list pods',
    async () => {
      const name = fresh();
      await policy(name);
      return (await send('DELETE', policyPath(name))).status === 200;
    },
  ],
  [
    'a namespace can be deleted with its policies and pods',
    'get namespaces',
    async () => {
      const path = `${GROUP_PATH}/${ENDING}/workloadpolicies/used-${(ending++ % 3) + 1}`;
      return (await send('DELETE', path)).status === 200;
    },
  ],
  [
    'Events tell of promotions',
    'create events',
    async () => {
      const name = fresh();
      await promote(name);
      const path = `/api/v1/namespaces/${NAMESPACE}/events?fieldSelector=involvedObject.name=${name}`;
      return await worksWithin(async () => ((await send('GET', path)).body['items'] as unknown[]).length > 0);
    },
  ],
  [
    'the promote label can be set',
    'create subjectaccessreviews',
    async () => (await promote(fresh())) === 201,
  ],
  ['one of several controllers leads', 'create,get,update leases', isElected],
  [
    'metrics can be read',
    'create tokenreviews',
    async () => {
      const reader = await plane.serviceAccount('monitoring', 'prometheus');
      const token = await readFile(reader.tokenFile, 'utf8');
      return (await readMetrics(plane, controller, token)).status === 200;
    },
  ],
];

describe('without one right of the controller', () => {
  it('there is a function for each rule', () => {
    const named = FUNCTIONS.map(([, right]) => rightOf(right));
    expect(rights.rules.filter((rule) => !named.some((right) => gives(rule, right)))).toEqual([]);
  });

  testsWithoutOneRight(FUNCTIONS, () => rights);
});
