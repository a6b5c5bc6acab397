import { setTimeout as delay } from 'node:timers/promises';
import { POLICY_LABEL, PROMOTE_LABEL, REQUIRE_POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { chartObjects, createAll } from './chart-objects.ts';
import { type DirectAnswer, directRequest } from './direct-request.ts';

const NAMESPACE = 'shop';
const REQUIRED_PLUGIN_PATH =
  '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/runtime-enforcer-required-plugin';
/** The API server puts its policies into an order of chance whenever one has changed, within a second. */
const REORDERED_MS = 1_100;
/** That many orders are hardly ever all the same. */
const ORDERS = 10;
const GROUP_PATH = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await installCustomResources(client);
  for (const [name, value] of [
    [NAMESPACE, undefined],
    ['strict', 'deny'],
    ['lax', 'warn'],
    ['runtime-enforcer', undefined],
  ] as const) {
    await plane.serviceAccount(name, 'default');
    if (value !== undefined) await label(`/api/v1/namespaces/${name}`, { [REQUIRE_POLICY_LABEL]: value });
  }
  await createAll(client, await chartObjects('admission'));
  // Policies take effect a moment after they were written.
  await eventually('all policies are in force', async () => {
    const [immutable, required, promoted, bound, plugin] = await Promise.all([
      isImmutable(),
      createPod('strict', {}, { dryRun: true }).then(({ status }) => status === 403),
      propose({ [PROMOTE_LABEL]: 'x' }, { dryRun: true }).then(({ status }) => status === 422),
      isAutoBound(),
      createPod(NAMESPACE, { labels: { [POLICY_LABEL]: 'x' } }, { dryRun: true }).then(
        ({ body }) => annotationsOf(body)[PLUGIN_ANNOTATION] !== undefined,
      ),
    ]);
    return immutable && required && promoted && bound && plugin ? true : undefined;
  });
});
afterAll(async () => await plane.stop());

const PLUGIN_ANNOTATION = 'required-plugins.noderesource.dev';

interface Metadata {
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly object[];
}

const metadataOf = (body: Record<string, unknown>): Metadata => body['metadata'] ?? {};
const annotationsOf = (body: Record<string, unknown>) => metadataOf(body).annotations ?? {};
const policyOf = ({ body }: DirectAnswer) => metadataOf(body).labels?.[POLICY_LABEL];

let pods = 0;
async function createPod(
  namespace: string,
  metadata: Metadata,
  options: { dryRun?: boolean; as?: { user: string; groups: string[] }; spec?: object } = {},
): Promise<DirectAnswer> {
  const { dryRun = false, as, spec } = options;
  return await directRequest(plane, {
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/pods${dryRun ? '?dryRun=All' : ''}`,
    body: {
      metadata: { name: `pod-${++pods}`, ...metadata },
      spec: { containers: [{ name: 'app', image: 'app' }], ...spec },
    },
    ...(as && { as }),
  });
}

async function label(path: string, labels: Record<string, string | null>): Promise<DirectAnswer> {
  return await directRequest(plane, { method: 'PATCH', path, body: { metadata: { labels } } });
}

async function policy(name: string, autoBind: boolean, namespace = NAMESPACE): Promise<void> {
  await directRequest(plane, {
    method: 'POST',
    path: `${GROUP_PATH}/${namespace}/workloadpolicies`,
    body: {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicy',
      metadata: { name },
      spec: { mode: 'monitor', binding: { autoBind } },
    },
  });
}

async function propose(labels: Record<string, string>, options: { dryRun?: boolean } = {}) {
  return await directRequest(plane, {
    method: 'POST',
    path: `${GROUP_PATH}/${NAMESPACE}/workloadpolicyproposals${options.dryRun ? '?dryRun=All' : ''}`,
    body: {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicyProposal',
      metadata: { name: `deploy-${++pods}`, labels },
      spec: {},
    },
  });
}

async function isImmutable(): Promise<boolean> {
  await createPod(NAMESPACE, { name: 'probe' });
  const { status } = await label(`/api/v1/namespaces/${NAMESPACE}/pods/probe?dryRun=All`, {
    [POLICY_LABEL]: 'x',
  });
  return status === 403;
}

const owner = (kind: string, name: string, apiVersion = kind.includes('Job') ? 'batch/v1' : 'apps/v1') => ({
  ownerReferences: [{ apiVersion, kind, name, uid: 'u', controller: true }],
});

async function isAutoBound(): Promise<boolean> {
  await policy('ds-probe', true);
  return policyOf(await createPod(NAMESPACE, owner('DaemonSet', 'probe'), { dryRun: true })) === 'ds-probe';
}

describe('the policy label of a pod', () => {
  it.each([
    ['added', {}, { [POLICY_LABEL]: 'web' }, 403],
    ['changed', { [POLICY_LABEL]: 'web' }, { [POLICY_LABEL]: 'db' }, 403],
    ['emptied', { [POLICY_LABEL]: 'web' }, { [POLICY_LABEL]: '' }, 403],
    ['removed', { [POLICY_LABEL]: 'web' }, { [POLICY_LABEL]: null }, 403],
    ['left as it is', { [POLICY_LABEL]: 'web' }, { [POLICY_LABEL]: 'web', other: 'x' }, 200],
    ['not there', {}, { other: 'x' }, 200],
  ])('cannot change after creation: %s', async (_, before, change, status) => {
    const name = `label-${++pods}`;
    await createPod(NAMESPACE, { name, labels: before });
    for (const subresource of ['', '/status']) {
      const answer = await label(`/api/v1/namespaces/${NAMESPACE}/pods/${name}${subresource}`, change);
      expect([subresource, answer.status]).toEqual([subresource, status]);
      if (status === 403) expect(answer.body['message']).toContain('is immutable');
    }
  });
});

describe('a namespace that requires policies', () => {
  it('refuses, or warns of, pods without one', async () => {
    const refused = await createPod('strict', {});
    expect([refused.status, refused.body['message']]).toEqual([
      403,
      expect.stringContaining('must name a WorkloadPolicy in the label'),
    ]);
    expect((await createPod('strict', { labels: { [POLICY_LABEL]: '' } })).status).toBe(403);
    expect((await createPod('strict', { labels: { [POLICY_LABEL]: 'web' } })).status).toBe(201);
    expect((await createPod('strict', { labels: { [REQUIRE_POLICY_LABEL]: 'exempt' } })).status).toBe(201);
    const warned = await createPod('lax', {});
    expect([warned.status, warned.warnings]).toEqual([
      201,
      [expect.stringContaining('must name a WorkloadPolicy')],
    ]);
    expect((await createPod(NAMESPACE, {})).warnings).toEqual([]);
  });

  it('lets kubelet show its static pods, and nobody else pretend to', async () => {
    const mirror = { annotations: { 'kubernetes.io/config.mirror': 'x' } };
    const options = { spec: { nodeName: 'n1' }, dryRun: true };
    expect((await createPod('strict', mirror, options)).status).toBe(403);
    const as = { user: 'somebody', groups: ['system:nodes', 'system:masters'] };
    expect((await createPod('strict', mirror, { ...options, as })).status).toBe(201);
  });

  it('counts what was bound automatically', async () => {
    await policy('sts-strict', true, 'strict');
    const bound = await createPod('strict', owner('StatefulSet', 'strict'));
    expect([bound.status, policyOf(bound)]).toEqual([201, 'sts-strict']);
  });

  it('takes no other value of the label', async () => {
    const { status, body } = await label('/api/v1/namespaces/lax', { [REQUIRE_POLICY_LABEL]: 'denny' });
    expect([status, body['message']]).toEqual([422, expect.stringContaining('must be "warn" or "deny"')]);
    expect((await label('/api/v1/namespaces/lax', { [REQUIRE_POLICY_LABEL]: null })).status).toBe(200);
    expect((await label('/api/v1/namespaces/lax', { [REQUIRE_POLICY_LABEL]: 'warn' })).status).toBe(200);
  });
});

describe('auto-bind', () => {
  beforeAll(async () => {
    const bound = [
      'deploy-web',
      'rs-lone',
      'ds-logs',
      'sts-db',
      'job-once',
      'cronjob-nightly',
      'job-nightly-29000001',
    ];
    for (const name of bound) await policy(name, true);
    await policy('deploy-off', false);
    await policy('ds-logs', true, 'runtime-enforcer');
    // A policy is known to the API server's admission a moment after it was written.
    await eventually('the last policy is known', async () =>
      policyOf(await createPod(NAMESPACE, owner('Job', 'nightly-29000001'), { dryRun: true })),
    );
  });

  const replicaSet = (name: string, hash: string, labels: Record<string, string> = {}) => ({
    ...owner('ReplicaSet', name),
    labels: { 'pod-template-hash': hash, ...labels },
  });

  it.each<[string, Metadata, string | undefined]>([
    ["a Deployment's", replicaSet('web-abc12', 'abc12'), 'deploy-web'],
    ["a ReplicaSet's", owner('ReplicaSet', 'lone'), 'rs-lone'],
    ["a DaemonSet's", owner('DaemonSet', 'logs'), 'ds-logs'],
    ["a StatefulSet's", owner('StatefulSet', 'db'), 'sts-db'],
    ["a Job's", owner('Job', 'once'), 'job-once'],
    ["a CronJob's", owner('Job', 'nightly-28000000'), 'cronjob-nightly'],
    ["another Deployment's", replicaSet('shop-abc12', 'abc12'), undefined],
    ['a policy that does not ask for it', replicaSet('off-abc12', 'abc12'), undefined],
    ['another hash', replicaSet('web-abc12', 'c12'), undefined],
    ['nobody', {}, undefined],
    ['a namesake of another group', owner('DaemonSet', 'logs', 'evil/v1'), undefined],
    ['a Pod with a hostile hash', replicaSet('-', ''), undefined],
    ['its own label', replicaSet('web-abc12', 'abc12', { [POLICY_LABEL]: 'mine' }), 'mine'],
    ['an empty label', replicaSet('web-abc12', 'abc12', { [POLICY_LABEL]: '' }), ''],
  ])('labels a pod by its workload: %s', async (_, metadata, expected) => {
    const created = await createPod(NAMESPACE, metadata);
    expect([created.status, policyOf(created)]).toEqual([201, expected]);
    const others = Object.entries(metadata.labels ?? {});
    for (const [name, value] of others) expect(metadataOf(created.body).labels?.[name]).toBe(value);
  });

  it('gives one label where two policies claim a pod', async () => {
    const bound = await createPod(NAMESPACE, owner('Job', 'nightly-29000001'));
    expect(['cronjob-nightly', 'job-nightly-29000001']).toContain(policyOf(bound));
  });

  it("leaves the product's own namespace alone", async () => {
    const created = await createPod('runtime-enforcer', owner('DaemonSet', 'logs'));
    expect([created.status, policyOf(created)]).toEqual([201, undefined]);
  });
});

describe('the required plugin', () => {
  it.each([
    [undefined, '["runtime-enforcer-agent"]'],
    ['["other"]', '["other", "runtime-enforcer-agent"]'],
    [' [ "other" , "x" ] ', '[ "other" , "x" , "runtime-enforcer-agent"]'],
    ['[]', '["runtime-enforcer-agent"]'],
    ['[ ]', '["runtime-enforcer-agent"]'],
    ['nonsense', '["runtime-enforcer-agent"]'],
    ['["runtime-enforcer-agent"]', '["runtime-enforcer-agent"]'],
  ])('is asked for on bound pods: %j', async (before, after) => {
    const annotations = before === undefined ? {} : { [PLUGIN_ANNOTATION]: before };
    const bound = await createPod(NAMESPACE, { labels: { [POLICY_LABEL]: 'web' }, annotations });
    expect(annotationsOf(bound.body)[PLUGIN_ANNOTATION]).toBe(after);
    if (after !== before) expect(JSON.parse(after)).toContain('runtime-enforcer-agent');
    const free = await createPod(NAMESPACE, { annotations });
    expect(annotationsOf(free.body)[PLUGIN_ANNOTATION]).toBe(before);
  });

  it('is asked for on pods that are bound automatically too, in whichever order the API server has the two', async () => {
    for (let order = 0; order < ORDERS; order++) {
      expect((await label(REQUIRED_PLUGIN_PATH, { order: String(order) })).status).toBe(200);
      await delay(REORDERED_MS);
      const bound = await createPod(NAMESPACE, owner('DaemonSet', 'probe'), { dryRun: true });
      expect([policyOf(bound), annotationsOf(bound.body)[PLUGIN_ANNOTATION]]).toEqual([
        'ds-probe',
        '["runtime-enforcer-agent"]',
      ]);
    }
  });
});
