import fc from 'fast-check';
import { POLICY_LABEL, PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { chartObjects, createAll } from './chart-objects.ts';
import {
  CONTROLLER_NAMESPACE,
  type ControllerPlace,
  controllerPlace,
  type ControllerProcess,
} from './controller-process.ts';
import { type DirectAnswer, directRequest } from './direct-request.ts';

const NAMESPACE = 'shop';
const GROUP_PATH = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces';
const API_VERSION = 'runtimeenforcer.kubewarden.io/v1alpha1';
const SAMPLES = 150;
const SEED = 20_260_131;
/** May write proposals everywhere, and policies nowhere: as an agent. */
const AGENT = { user: 'agent', groups: ['agents'] };
/** May write both in the namespace. */
const OPERATOR = { user: 'operator', groups: ['operators'] };

const labels = fc.constantFrom(undefined, 'monitor', 'protect', 'Monitor', '', 'x');
const paths = fc.constantFrom<string[]>([], ['/bin/a'], ['/bin/a', '/bin/b'], ['/bin/b', '/bin/a']);
const cases = fc.record({
  as: fc.constantFrom(AGENT, OPERATOR),
  before: fc.option(fc.record({ label: labels, allowed: paths }), { nil: undefined }),
  after: fc.record({ label: labels, allowed: paths }),
});
type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never;
const samples = fc.sample(cases, { numRuns: SAMPLES, seed: SEED });
const labelsFor = (label: string | undefined): Record<string, string> =>
  label === undefined ? {} : { [PROMOTE_LABEL]: label };

let plane: ControlPlane;
let place: ControllerPlace;
let controller: ControllerProcess;
beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await installCustomResources(client);
  for (const name of [NAMESPACE, 'unchecked', 'ending']) await plane.serviceAccount(name, 'default');
  await createAll(client, roles());
  place = await controllerPlace(plane);
  await holdLease();
  controller = await place.start({ args: ['--leader-elect'] });
  await controller.ready();
  await create(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, deployment('web'));
  // What was there before anybody judged.
  for (const [index, { before }] of samples.entries()) {
    if (before === undefined) continue;
    const owners = [{ ...OWNER, apiVersion: 'apps/v1', uid: 'u' }];
    const labels = labelsFor(before.label);
    const made = await propose({ name: `case-${index}`, labels, allowed: before.allowed, owners });
    expect(made.status).toBe(201);
  }
  await place.installWebhooks(controller);
  await eventually('the webhooks are asked', async () => {
    const { status } = await propose({ name: 'probe', as: AGENT, labels: { [PROMOTE_LABEL]: 'x' } });
    return status === 422 ? true : undefined;
  });
});
afterAll(async () => {
  await place.stop();
  await plane.stop();
});

/** Somebody else leads: a replica that does not must answer all the same, and leaves labelled proposals alone. */
async function holdLease(): Promise<void> {
  await create(`/apis/coordination.k8s.io/v1/namespaces/${CONTROLLER_NAMESPACE}/leases`, {
    metadata: { name: '4e873589.rancher.io' },
    spec: {
      holderIdentity: 'somebody',
      leaseDurationSeconds: 3_600,
      renewTime: '2026-01-01T00:00:00.000000Z',
    },
  });
}

function roles() {
  const roleOf = (name: string, resources: string[]) => [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name },
      rules: [{ apiGroups: ['runtimeenforcer.kubewarden.io'], resources, verbs: ['*'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name }],
    },
  ];
  return [
    ...roleOf('agents', ['workloadpolicyproposals']),
    ...roleOf('operators', ['workloadpolicyproposals', 'workloadpolicies']),
  ];
}

interface Proposed {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly owners?: unknown;
  readonly as?: typeof AGENT;
  readonly allowed?: readonly string[];
  readonly dryRun?: boolean;
}

async function propose({ name, labels = {}, owners, as, allowed = [], dryRun }: Proposed) {
  return await directRequest(plane, {
    method: 'POST',
    path: `${GROUP_PATH}/${NAMESPACE}/workloadpolicyproposals${dryRun === true ? '?dryRun=All' : ''}`,
    body: {
      apiVersion: API_VERSION,
      kind: 'WorkloadPolicyProposal',
      metadata: { name, labels, ownerReferences: owners ?? [{ ...OWNER, uid: '' }] },
      spec: { rulesByContainer: { app: { executables: { allowed } } } },
    },
    ...(as && { as }),
  });
}

/** As agents write it: the API server wants the fields to be there. */
const OWNER = { apiVersion: '', kind: 'Deployment', name: 'web' };
const template = (labels: Record<string, string> = {}) => ({
  metadata: { labels: { app: 'web', ...labels } },
  spec: { containers: [{ name: 'app', image: 'app' }], restartPolicy: 'Always' },
});
const deployment = (name: string, labels = {}, podLabels = {}) => ({
  metadata: { name, labels },
  spec: { selector: { matchLabels: { app: 'web' } }, template: template(podLabels) },
});

async function create(path: string, body: unknown): Promise<DirectAnswer> {
  return await directRequest(plane, { method: 'POST', path, body });
}
const createPolicy = async (name: string, namespace = NAMESPACE) =>
  await create(`${GROUP_PATH}/${namespace}/workloadpolicies`, {
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicy',
    metadata: { name },
    spec: { mode: 'monitor' },
  });
const createPod = async (name: string, policy: string, namespace = NAMESPACE) =>
  await create(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name, labels: { [POLICY_LABEL]: policy } },
    spec: { containers: [{ name: 'app', image: 'app' }] },
  });
const messageOf = ({ body }: DirectAnswer) => body['message'];

describe('the owner reference of a proposal', () => {
  let uid = '';
  beforeAll(async () => {
    const path = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/web`;
    const { body } = await directRequest(plane, { method: 'GET', path });
    uid = (body['metadata'] as { readonly uid: string }).uid;
  });

  it('is completed', async () => {
    const { status, body, warnings } = await propose({ name: 'deploy-web', as: AGENT });
    expect([status, warnings]).toEqual([201, []]);
    expect((body['metadata'] as { ownerReferences: unknown }).ownerReferences).toEqual([
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        name: 'web',
        uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
  });

  it.each([
    ['none', [], 422, 'exactly one owner'],
    ['a stranger', [{ ...OWNER, name: 'db', uid: '' }], 410, 'Deployment shop/db is not found'],
    ['another kind', [{ ...OWNER, kind: 'Pod', uid: '' }], 422, 'is not supported'],
    ['a forged uid', [{ ...OWNER, apiVersion: 'apps/v1', uid: 'forged' }], 422, 'uid is not that of'],
  ])('is checked: %s', async (_, owners, status, words) => {
    const answer = await propose({ name: 'deploy-x', as: AGENT, owners });
    expect([answer.status, messageOf(answer)]).toEqual([status, expect.stringContaining(words)]);
  });
});

describe('the deletion of a policy', () => {
  const remove = async (path: string) => await directRequest(plane, { method: 'DELETE', path });

  it('waits for pods that are not finished', async () => {
    await createPolicy('used');
    await createPod('user-1', 'used');
    await createPod('user-2', 'used');
    const path = `${GROUP_PATH}/${NAMESPACE}/workloadpolicies/used`;
    const refused = await remove(path);
    expect([refused.status, messageOf(refused)]).toEqual([
      403,
      expect.stringContaining(
        'cannot delete WorkloadPolicy "used" while 2 pod(s) in namespace "shop" still use it: user-1, user-2',
      ),
    ]);
    const all = await remove(`${GROUP_PATH}/${NAMESPACE}/workloadpolicies`);
    expect([all.status, messageOf(all)]).toEqual([403, expect.stringContaining('user-1, user-2')]);
    for (const name of ['user-1', 'user-2']) {
      await directRequest(plane, {
        method: 'PATCH',
        path: `/api/v1/namespaces/${NAMESPACE}/pods/${name}/status`,
        body: { status: { phase: name === 'user-1' ? 'Succeeded' : 'Failed' } },
      });
    }
    expect((await remove(path)).status).toBe(200);
  });

  it('proceeds where the namespace is being deleted', async () => {
    await createPolicy('used', 'ending');
    await createPod('user', 'used', 'ending');
    const path = `${GROUP_PATH}/ending/workloadpolicies/used`;
    expect((await remove(path)).status).toBe(403);
    await remove('/api/v1/namespaces/ending');
    expect((await remove(path)).status).toBe(200);
  });
});

describe('the policy label', () => {
  it('is warned of on a pod when the policy is unknown, and known as soon as it is created', async () => {
    const { status, warnings } = await createPod('early', 'late');
    expect([status, warnings]).toEqual([201, [expect.stringContaining('"late" does not exist')]]);
    await createPolicy('late');
    expect((await createPod('timely', 'late')).warnings).toEqual([]);
  });

  it.each([
    ['deployments', 'apps', (labels: object, pods: object) => deployment('w', labels, pods)],
    [
      'jobs',
      'batch',
      (labels: object, pods: Record<string, string>) => ({
        metadata: { name: 'w', labels },
        spec: { template: { ...template(pods), spec: { ...template().spec, restartPolicy: 'Never' } } },
      }),
    ],
    [
      'cronjobs',
      'batch',
      (labels: object, pods: Record<string, string>) => ({
        metadata: { name: 'w', labels },
        spec: {
          schedule: '* * * * *',
          jobTemplate: {
            spec: { template: { ...template(pods), spec: { ...template().spec, restartPolicy: 'Never' } } },
          },
        },
      }),
    ],
  ])('is warned of when %s are applied', async (plural, group, make) => {
    const path = `/apis/${group}/v1/namespaces/${NAMESPACE}/${plural}?dryRun=All`;
    const label = { [POLICY_LABEL]: 'nowhere' };
    const warningsOf = async (body: unknown) => (await create(path, body)).warnings;
    expect(await warningsOf(make({}, {}))).toEqual([]);
    expect(await warningsOf(make({}, label))).toEqual([expect.stringContaining('"nowhere" does not exist')]);
    expect(await warningsOf(make(label, {}))).toEqual([expect.stringContaining('binds nothing on a')]);
  });
});

describe('the webhook and the admission policy', () => {
  /** What the API server answers to each case, with whatever judges there now. */
  async function verdicts(samples: readonly Case[]): Promise<number[]> {
    const results: number[] = [];
    for (const [index, { as, before, after }] of samples.entries()) {
      const name = `case-${index}`;
      const path = `${GROUP_PATH}/${NAMESPACE}/workloadpolicyproposals/${name}`;
      if (before === undefined) {
        const options = { name, as, labels: labelsFor(after.label), allowed: after.allowed, dryRun: true };
        results.push((await propose(options)).status);
        continue;
      }
      const held = (await directRequest(plane, { method: 'GET', path })).body;
      const body = {
        ...held,
        metadata: { ...(held['metadata'] as object), labels: labelsFor(after.label) },
        spec: { rulesByContainer: { app: { executables: { allowed: after.allowed } } } },
      };
      results.push(
        (await directRequest(plane, { method: 'PUT', path: `${path}?dryRun=All`, body, as })).status,
      );
    }
    return results;
  }

  it('judge promotions alike', { timeout: 120_000 }, async () => {
    const webhook = await verdicts(samples);
    await directRequest(plane, {
      method: 'DELETE',
      path: '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/runtime-enforcer-validating-webhook-configuration',
    });
    const probe = { name: 'probe', as: AGENT, labels: { [PROMOTE_LABEL]: 'x' }, dryRun: true };
    const judged = async (status: number): Promise<void> => {
      await eventually(`a wrong label is answered with ${status}`, async () =>
        (await propose(probe)).status === status ? true : undefined,
      );
    };
    await judged(201);
    expect(new Set(await verdicts(samples))).toEqual(new Set([200, 201]));
    await createAll(plane.admin.client, await chartObjects('admission/promote-validation.yaml'));
    await judged(422);
    const policy = await verdicts(samples);
    const differences = samples.flatMap((each, index) =>
      webhook[index] === policy[index] ? [] : [{ ...each, webhook: webhook[index], policy: policy[index] }],
    );
    expect(differences).toEqual([]);
    for (const status of [200, 201, 403, 422]) {
      expect(policy.filter((each) => each === status).length).toBeGreaterThan(SAMPLES / 30);
    }
  });
});
