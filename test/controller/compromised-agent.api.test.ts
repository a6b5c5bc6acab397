import { API_VERSION, PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
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
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { attempt, isForbiddenByRbac, type Outcome } from './attempt.ts';
import { chartObjects, createAll } from './chart-objects.ts';
import { CONTROLLER_NAMESPACE, type ControllerPlace, controllerPlace } from './controller-process.ts';
import { objectOf } from './proposals.ts';

const ACCOUNT = 'runtime-enforcer-agent';
const TENANT = 'bank';
const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets' };
const ACCOUNTS: Resource = { group: '', version: 'v1', plural: 'serviceaccounts' };
const CONFIG_MAPS: Resource = { group: '', version: 'v1', plural: 'configmaps' };
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };
const DEPLOYMENTS: Resource = { group: 'apps', version: 'v1', plural: 'deployments' };
const DAEMON_SETS: Resource = { group: 'apps', version: 'v1', plural: 'daemonsets' };
const CLUSTER_ROLES: Resource = { group: 'rbac.authorization.k8s.io', version: 'v1', plural: 'clusterroles' };
const POD_SPEC = { containers: [{ name: 'app', image: 'app' }] };

let plane: ControlPlane;
let place: ControllerPlace;
/** Who has taken the token of an agent from its node. */
let thief: ApiClient;
let made = 0;

beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await installCustomResources(client);
  await plane.serviceAccount(TENANT, 'default');
  thief = (await plane.serviceAccount(CONTROLLER_NAMESPACE, ACCOUNT)).client;
  await createAll(client, await chartObjects('agent/rbac.yaml'));
  const selector = { matchLabels: { app: 'vault' } };
  const template = { metadata: { labels: selector.matchLabels }, spec: POD_SPEC };
  await post(DEPLOYMENTS, { metadata: { name: 'vault' }, spec: { selector, template } });
  await post(PODS, { metadata: { name: 'vault-1' }, spec: POD_SPEC });
  await post(SECRETS, { metadata: { name: 'gold' } });
  await post(WORKLOAD_POLICIES, policy('guarded'));
  place = await controllerPlace(plane);
  const controller = await place.start();
  await controller.ready();
  await place.installWebhooks(controller);
  await eventually('the webhooks are asked', async () => {
    const outcome = await attempt(client, creation(proposal({ [PROMOTE_LABEL]: 'x' })));
    return outcome === 'done' ? undefined : true;
  });
});
afterAll(async () => {
  await place.stop();
  await plane.stop();
});

async function post(resource: Resource, body: object): Promise<KubeObject> {
  const path = collectionPath(resource, TENANT);
  return (await plane.admin.client.request({ method: 'POST', path, body })) as KubeObject;
}

const policy = (name: string) => ({
  apiVersion: API_VERSION,
  kind: 'WorkloadPolicy',
  metadata: { name },
  spec: { mode: 'protect', rulesByContainer: { app: { executables: { allowed: ['/app'] } } } },
});
const OWNER = { apiVersion: '', kind: 'Deployment', name: 'vault', uid: '' };
const proposal = (labels: object = {}, owner: object = OWNER, suffix = '') => ({
  apiVersion: API_VERSION,
  kind: 'WorkloadPolicyProposal',
  metadata: { name: `deploy-vault-${++made}${suffix}`, labels, ownerReferences: [owner] },
  spec: { rulesByContainer: { app: { executables: { allowed: ['/app'] } } } },
});
const creation = (body: object) => ({
  method: 'POST' as const,
  path: collectionPath(WORKLOAD_POLICY_PROPOSALS, TENANT),
  body,
});

type Request = Parameters<ApiClient['request']>[0];
const at = (resource: Resource, name: string, subresource?: string): string =>
  objectPath({ resource, namespace: TENANT, name, ...(subresource !== undefined && { subresource }) });
const change = (path: string, body: object): Request => ({
  ...{ method: 'PATCH', path, patchType: 'application/merge-patch+json', body },
});
const own = (resource: Resource, name: string, subresource?: string): string =>
  objectPath({
    resource,
    namespace: CONTROLLER_NAMESPACE,
    name,
    ...(subresource !== undefined && { subresource }),
  });

const FORBIDDEN: readonly (readonly [string, Request])[] = [
  [
    'create a policy',
    { method: 'POST', path: collectionPath(WORKLOAD_POLICIES, TENANT), body: policy('mine') },
  ],
  ['switch a policy to monitor', change(at(WORKLOAD_POLICIES, 'guarded'), { spec: { mode: 'monitor' } })],
  ['delete a policy', { method: 'DELETE', path: at(WORKLOAD_POLICIES, 'guarded') }],
  ['write the status of a policy', change(at(WORKLOAD_POLICIES, 'guarded', 'status'), { status: {} })],
  ['delete a proposal', { method: 'DELETE', path: at(WORKLOAD_POLICY_PROPOSALS, 'any') }],
  ['write the status of a proposal', change(at(WORKLOAD_POLICY_PROPOSALS, 'any', 'status'), { status: {} })],
  ['read a secret', { path: at(SECRETS, 'gold') }],
  ['list secrets', { path: collectionPath(SECRETS) }],
  ["read the secrets of the product's namespace", { path: collectionPath(SECRETS, CONTROLLER_NAMESPACE) }],
  ['read configuration', { path: collectionPath(CONFIG_MAPS, TENANT) }],
  ['list pods', { path: collectionPath(PODS) }],
  [
    'create a pod',
    { method: 'POST', path: collectionPath(PODS, TENANT), body: { metadata: { name: 'x' }, spec: POD_SPEC } },
  ],
  ['take the label off a pod', change(at(PODS, 'vault-1'), { metadata: { labels: {} } })],
  ['delete a pod', { method: 'DELETE', path: at(PODS, 'vault-1') }],
  ['run something in a pod', { method: 'POST', path: `${at(PODS, 'vault-1', 'exec')}?command=id` }],
  ['read what a pod logs', { path: at(PODS, 'vault-1', 'log') }],
  ['change a workload', change(at(DEPLOYMENTS, 'vault'), { metadata: { labels: { x: 'y' } } })],
  ['delete the DaemonSet of the agents', { method: 'DELETE', path: own(DAEMON_SETS, ACCOUNT) }],
  [
    'label a namespace',
    change(objectPath({ resource: NAMESPACES, name: TENANT }), { metadata: { labels: {} } }),
  ],
  [
    'get a token of another account',
    { method: 'POST', path: own(ACCOUNTS, 'runtime-enforcer-controller', 'token'), body: { spec: {} } },
  ],
  ['give itself rights', change(objectPath({ resource: CLUSTER_ROLES, name: ACCOUNT }), { rules: [] })],
  ['read nodes', { path: collectionPath(NODES) }],
];

describe('who has the token of an agent cannot', () => {
  it.each(FORBIDDEN)('%s', async (_, request) => {
    expect(await attempt(thief, request)).toSatisfy(isForbiddenByRbac);
  });

  it('promote: neither by a new proposal, nor by one that is there', async () => {
    expect(await attempt(thief, creation(proposal({ [PROMOTE_LABEL]: 'monitor' })))).toSatisfy(
      isForbiddenByWebhook,
    );
    const known = await post(WORKLOAD_POLICY_PROPOSALS, proposal());
    const { name } = known.metadata;
    const labelled = { ...known, metadata: { ...known.metadata, labels: { [PROMOTE_LABEL]: 'monitor' } } };
    const path = at(WORKLOAD_POLICY_PROPOSALS, name);
    expect(await attempt(thief, { method: 'PUT', path, body: labelled })).toSatisfy(isForbiddenByWebhook);
    expect(await objectOf(plane.admin.client, WORKLOAD_POLICIES, TENANT, name)).toBeUndefined();
  });

  it('add a path to what somebody is promoting', async () => {
    // Its name is too long for a policy, so that it stays.
    const known = await post(
      WORKLOAD_POLICY_PROPOSALS,
      proposal({ [PROMOTE_LABEL]: 'monitor' }, OWNER, 'x'.repeat(60)),
    );
    const rulesByContainer = { app: { executables: { allowed: ['/app', '/tmp/evil'] } } };
    const path = at(WORKLOAD_POLICY_PROPOSALS, known.metadata.name);
    const outcome = await attempt(thief, {
      method: 'PUT',
      path,
      body: { ...known, spec: { rulesByContainer } },
    });
    expect(outcome).toSatisfy((each: Outcome) => isForbiddenByWebhook(each));
  });

  it('make a proposal for a workload that is not there', async () => {
    const outcome = await attempt(thief, creation(proposal({}, { ...OWNER, name: 'nobody' })));
    expect(outcome).toMatchObject({ code: 410 });
  });
});

function isForbiddenByWebhook(outcome: Outcome): boolean {
  return outcome !== 'done' && outcome.code === 403 && outcome.said.includes('cannot promote proposals');
}

/** What docs/threat-model.md says that remains. */
describe('who has the token of an agent can still', () => {
  it('add paths to the proposals of any namespace, which a person sees before promoting, and take them away', async () => {
    const known = await post(WORKLOAD_POLICY_PROPOSALS, proposal());
    const path = at(WORKLOAD_POLICY_PROPOSALS, known.metadata.name);
    const rulesByContainer = { app: { executables: { allowed: ['/tmp/evil'] } } };
    expect(
      await attempt(thief, { method: 'PUT', path, body: { ...known, spec: { rulesByContainer } } }),
    ).toBe('done');
  });

  it('read any policy, any proposal, the names of namespaces, and any pod whose name it knows', async () => {
    for (const resource of [WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS, NAMESPACES]) {
      expect(await attempt(thief, { path: collectionPath(resource) })).toBe('done');
    }
    expect(await attempt(thief, { path: at(PODS, 'vault-1') })).toBe('done');
  });

  it('write Events in any namespace', async () => {
    const involvedObject = { kind: 'Pod', namespace: TENANT, name: 'vault-1' };
    const body = { metadata: { name: 'x' }, involvedObject, reason: 'ExecutableDenied', type: 'Warning' };
    const path = collectionPath(EVENTS, TENANT);
    expect(await attempt(thief, { method: 'POST', path, body })).toBe('done');
  });
});
