import { ACKNOWLEDGE_ANNOTATION_PREFIX, API_VERSION, PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { attempt, isForbiddenByRbac, type Outcome } from './attempt.ts';
import { chartObjects, createAll } from './chart-objects.ts';
import { type ControllerPlace, controllerPlace } from './controller-process.ts';
import { objectOf } from './proposals.ts';

const NAMESPACE = 'shop';
const ELSEWHERE = 'bank';
const DEPLOYMENTS: Resource = { group: 'apps', version: 'v1', plural: 'deployments' };
const RBAC = 'rbac.authorization.k8s.io';
/** Each bound in the namespace to the role behind it. `labeller` may change proposals, and may not create policies. */
const ROLES = {
  view: 'view',
  edit: 'edit',
  viewer: 'runtime-enforcer-viewer',
  operator: 'runtime-enforcer-operator',
  writer: 'runtime-enforcer-policy-writer',
  labeller: 'labeller',
} as const;
type Who = keyof typeof ROLES;
const EVERYBODY = Object.keys(ROLES) as Who[];

let plane: ControlPlane;
let place: ControllerPlace;
const clients = new Map<Who, ApiClient>();
let objects = 0;

beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await installCustomResources(client);
  // `view` and `edit` are put together by a controller.
  await plane.startControllers();
  for (const name of [NAMESPACE, ELSEWHERE]) await plane.serviceAccount(name, 'default');
  await createAll(client, [...(await chartObjects('user-roles.yaml')), labellerRole()]);
  for (const who of EVERYBODY) {
    const account = await plane.serviceAccount(NAMESPACE, who);
    clients.set(who, account.client);
    await createAll(client, [bindingOf(who)]);
  }
  const selector = { matchLabels: { app: 'web' } };
  const spec = { containers: [{ name: 'app', image: 'app' }] };
  const template = { metadata: { labels: selector.matchLabels }, spec };
  for (const namespace of [NAMESPACE, ELSEWHERE]) {
    await post(DEPLOYMENTS, namespace, {
      metadata: { name: 'web' },
      spec: { replicas: 0, selector, template },
    });
  }
  place = await controllerPlace(plane);
  const controller = await place.start();
  await controller.ready();
  await place.installWebhooks(controller);
  await eventually('roles are put together, and the webhooks are asked', async () => {
    const isSeen = (await list('view', WORKLOAD_POLICIES)) === 'done';
    const label = await newProposal(NAMESPACE, { [PROMOTE_LABEL]: 'x' }).then(
      () => undefined,
      () => true,
    );
    return isSeen && label === true ? true : undefined;
  });
});
afterAll(async () => {
  await place.stop();
  await plane.stop();
});

function labellerRole(): KubeObject {
  const rule = { apiGroups: [WORKLOAD_POLICY_PROPOSALS.group], resources: ['workloadpolicyproposals'] };
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRole',
    metadata: { name: ROLES.labeller },
    rules: [{ ...rule, verbs: ['get', 'patch'] }],
  };
}

function bindingOf(who: Who): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name: who, namespace: NAMESPACE },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: ROLES[who] },
    subjects: [{ kind: 'ServiceAccount', name: who, namespace: NAMESPACE }],
  };
}

async function post(resource: Resource, namespace: string, body: object): Promise<void> {
  await plane.admin.client.request({ method: 'POST', path: collectionPath(resource, namespace), body });
}

const policyBody = (name: string) => ({
  apiVersion: API_VERSION,
  kind: 'WorkloadPolicy',
  metadata: { name },
  spec: { mode: 'monitor', rulesByContainer: { app: { executables: { allowed: ['/app'] } } } },
});

async function newPolicy(namespace = NAMESPACE): Promise<string> {
  const name = `policy-${++objects}`;
  await post(WORKLOAD_POLICIES, namespace, policyBody(name));
  return name;
}

async function newProposal(namespace = NAMESPACE, labels: object = {}): Promise<string> {
  const name = `deploy-web-${++objects}`;
  const owner = { apiVersion: '', kind: 'Deployment', name: 'web', uid: '' };
  await post(WORKLOAD_POLICY_PROPOSALS, namespace, {
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicyProposal',
    metadata: { name, labels, ownerReferences: [owner] },
    spec: {},
  });
  return name;
}

const clientOf = (who: Who): ApiClient => {
  const client = clients.get(who);
  if (client === undefined) throw new Error(`there is no account ${who}`);
  return client;
};
const as = async (who: Who, request: Parameters<ApiClient['request']>[0]): Promise<Outcome> =>
  await attempt(clientOf(who), request);
const list = async (who: Who, resource: Resource, namespace = NAMESPACE) =>
  await as(who, { path: collectionPath(resource, namespace) });
const patch = async (who: Who, reference: Parameters<typeof objectPath>[0], body: object): Promise<Outcome> =>
  await as(who, {
    method: 'PATCH',
    path: objectPath(reference),
    patchType: 'application/merge-patch+json',
    body,
  });
const policyAt = (name: string, namespace = NAMESPACE) => ({ resource: WORKLOAD_POLICIES, namespace, name });
const promotion = { metadata: { labels: { [PROMOTE_LABEL]: 'monitor' } } };

async function promote(who: Who, namespace = NAMESPACE): Promise<Outcome> {
  const name = await newProposal(namespace);
  return await patch(who, { resource: WORKLOAD_POLICY_PROPOSALS, namespace, name }, promotion);
}

/** What people do, and who may; everybody else is refused by RBAC. */
const ACTS: readonly (readonly [string, readonly Who[], (who: Who) => Promise<Outcome>])[] = [
  [
    'see policies',
    ['view', 'edit', 'viewer', 'operator', 'writer'],
    async (who) => await list(who, WORKLOAD_POLICIES),
  ],
  [
    'see proposals',
    ['view', 'edit', 'viewer', 'operator', 'writer'],
    async (who) => await list(who, WORKLOAD_POLICY_PROPOSALS),
  ],
  [
    'acknowledge a violation',
    ['operator', 'writer'],
    async (who) =>
      await patch(who, policyAt(await newPolicy()), {
        metadata: { annotations: { [`${ACKNOWLEDGE_ANNOTATION_PREFIX}0`]: 'known' } },
      }),
  ],
  [
    'have new pods of a workload bound by its policy',
    ['operator', 'writer'],
    async (who) => await patch(who, policyAt(await newPolicy()), { spec: { binding: { autoBind: true } } }),
  ],
  [
    'switch protection off',
    ['operator', 'writer'],
    async (who) => await patch(who, policyAt(await newPolicy()), { spec: { mode: 'monitor' } }),
  ],
  [
    'create a policy',
    ['operator', 'writer'],
    async (who) =>
      await as(who, {
        method: 'POST',
        path: collectionPath(WORKLOAD_POLICIES, NAMESPACE),
        body: policyBody(`policy-${++objects}`),
      }),
  ],
  [
    'delete a policy',
    ['writer'],
    async (who) => await as(who, { method: 'DELETE', path: objectPath(policyAt(await newPolicy())) }),
  ],
  [
    'delete a proposal',
    ['writer'],
    async (who) => {
      const name = await newProposal();
      const path = objectPath({ resource: WORKLOAD_POLICY_PROPOSALS, namespace: NAMESPACE, name });
      return await as(who, { method: 'DELETE', path });
    },
  ],
  [
    'bind a workload by hand',
    ['edit'],
    async (who) =>
      await patch(
        who,
        { resource: DEPLOYMENTS, namespace: NAMESPACE, name: 'web' },
        { metadata: { annotations: { who } } },
      ),
  ],
  [
    'write what nodes say of a policy',
    [],
    async (who) =>
      await patch(
        who,
        { ...policyAt(await newPolicy()), subresource: 'status' },
        { status: { phase: 'Ready' } },
      ),
  ],
  ['see policies of another namespace', [], async (who) => await list(who, WORKLOAD_POLICIES, ELSEWHERE)],
  ['promote in another namespace', [], async (who) => await promote(who, ELSEWHERE)],
];

describe.each(ACTS)('to %s', (_, allowed, act) => {
  it.each(EVERYBODY)('is right for %s, or is refused', async (who) => {
    const outcome = await act(who);
    if (allowed.includes(who)) expect(outcome).toBe('done');
    else expect(outcome).toSatisfy(isForbiddenByRbac);
  });
});

describe('to promote', () => {
  it.each(['operator', 'writer'] as const)('is right for %s, and makes the policy', async (who) => {
    const name = await newProposal();
    const reference = { resource: WORKLOAD_POLICY_PROPOSALS, namespace: NAMESPACE, name };
    expect(await patch(who, reference, promotion)).toBe('done');
    await eventually('there is the policy', async () =>
      objectOf(plane.admin.client, WORKLOAD_POLICIES, NAMESPACE, name),
    );
  });

  it.each(['view', 'edit', 'viewer'] as const)('is refused to %s by RBAC', async (who) => {
    expect(await promote(who)).toSatisfy(isForbiddenByRbac);
  });

  it('is refused by the webhook to who may change proposals, and not create policies', async () => {
    const outcome = await promote('labeller');
    expect(outcome).not.toSatisfy(isForbiddenByRbac);
    expect(outcome).toMatchObject({
      code: 403,
      said: expect.stringContaining('cannot promote proposals') as string,
    });
  });
});
