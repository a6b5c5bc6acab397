import fc from 'fast-check';
import type { Parsed } from '@runtime-enforcer/api/field-error';
import { damaged, policyObject, proposalObject } from '@runtime-enforcer/api/testing/resource-arbitrary';
import { API_VERSION, WORKLOAD_POLICY_KIND, WORKLOAD_POLICY_PROPOSAL_KIND } from '@runtime-enforcer/api/keys';
import { parseWorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { parseWorkloadPolicyProposal } from '@runtime-enforcer/api/workload-policy-proposal';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { collectionPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from './custom-resources.ts';

const OBJECTS = 400;
const JUDGED_AT_ONCE = 8;
const SEED = 20_260_131;
const NAMESPACE = 'shop';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  await plane.serviceAccount(NAMESPACE, 'anyone');
  await hold(WORKLOAD_POLICIES, WORKLOAD_POLICY_KIND, { mode: 'monitor' });
  await hold(WORKLOAD_POLICY_PROPOSALS, WORKLOAD_POLICY_PROPOSAL_KIND, {});
});
afterAll(async () => await plane.stop());

type JsonObject = Record<string, unknown>;

/** What the API server says to an object, as a client with strict validation hears it; undefined when it takes it. */
async function admit(resource: Resource, object: JsonObject): Promise<string | undefined> {
  const { status, ...withoutStatus } = object;
  const metadata = { ...(object['metadata'] as JsonObject), namespace: NAMESPACE };
  const path = collectionPath(resource, NAMESPACE);
  const said = await dryRun('POST', path, { ...withoutStatus, metadata });
  // A create drops the status unseen: it is judged where the product writes it.
  if (said !== undefined || status === undefined) return said;
  return await dryRun('PUT', `${path}/${HOLDER}/status`, { ...holders.get(resource), status });
}

const HOLDER = 'holder';
const holders = new Map<Resource, JsonObject>();

/** Stores an object, so that there is one whose status can be written. */
async function hold(resource: Resource, kind: string, spec: JsonObject): Promise<void> {
  const body = { apiVersion: API_VERSION, kind, metadata: { name: HOLDER }, spec };
  const path = collectionPath(resource, NAMESPACE);
  holders.set(resource, (await plane.admin.client.request({ method: 'POST', path, body })) as JsonObject);
}

async function dryRun(method: 'POST' | 'PUT', path: string, body: JsonObject): Promise<string | undefined> {
  try {
    const query = { dryRun: 'All', fieldValidation: 'Strict' };
    await plane.admin.client.request({ method, path, query, body });
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && (error.code === 422 || error.code === 400)) return error.message;
    throw error;
  }
}

/** Null means "not there" to the API server, and is refused by us: see the test of that in `api`. */
function hasNull(value: unknown): boolean {
  if (value === null) return true;
  return typeof value === 'object' && Object.values(value as JsonObject).some(hasNull);
}

const TIME_FIELD = /^(since|acknowledgedAt|firstSeen|lastSeen|lastTransitionTime|.*Timestamp)$/;

/** The API server takes a list for a text with a format; only status fields have one. See the test of that below. */
function hasListForTime(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(
    ([name, field]) => (TIME_FIELD.test(name) && Array.isArray(field)) || hasListForTime(field),
  );
}

describe.each<[Resource, fc.Arbitrary<JsonObject>, (input: unknown) => Parsed<unknown>]>([
  [WORKLOAD_POLICIES, policyObject, parseWorkloadPolicy],
  [WORKLOAD_POLICY_PROPOSALS, proposalObject, parseWorkloadPolicyProposal],
])('the API server and api/ judge alike: $plural', (resource, objects, parse) => {
  it.each([
    ['whole', objects],
    ['damaged', damaged(objects)],
  ])('%s objects', { timeout: 120_000 }, async (_, candidates) => {
    const samples = fc
      .sample(candidates, { numRuns: OBJECTS, seed: SEED })
      .map((object) => JSON.parse(JSON.stringify(object)) as JsonObject)
      .filter((object) => !hasNull(object) && !hasListForTime(object));
    const answers = { accepted: 0, refused: 0 };
    const differences: unknown[] = [];
    const judge = async (object: JsonObject): Promise<void> => {
      const said = await admit(resource, object);
      const parsed = parse(object);
      if (parsed.ok !== (said === undefined)) differences.push({ object, said, parsed });
      answers[parsed.ok ? 'accepted' : 'refused']++;
    };
    // Nothing is stored, so the order in which they are judged does not count.
    const waiting = samples.values();
    await Promise.all(
      Array.from({ length: JUDGED_AT_ONCE }, async () => {
        for (const object of waiting) await judge(object);
      }),
    );
    expect(answers.accepted + answers.refused).toBe(samples.length);
    expect(differences).toEqual([]);
    // Objects that are all accepted, or all refused, would prove nothing.
    expect(answers.accepted).toBeGreaterThan(OBJECTS / 20);
    expect(answers.refused).toBeGreaterThan(OBJECTS / 20);
  });
});

describe('the CRDs', () => {
  it.each([
    ['usr/bin/ls', 'must start with "/"'],
    ['/usr/', 'must not end with "/"'],
    ['/memfd:x', 'must not start with "/memfd:"'],
    ['/x (deleted)', 'must not end with " (deleted)"'],
  ])('tell what is wrong with the path %j', async (path, message) => {
    const object = {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicy',
      metadata: { name: 'web' },
      spec: { mode: 'monitor', rulesByContainer: { app: { executables: { allowed: [path] } } } },
    };
    expect(await admit(WORKLOAD_POLICIES, object)).toContain(message);
  });

  it('take the largest policy that the bounds allow', async () => {
    const allowed = Array.from({ length: 1_000 }, (_, index) => `/usr/bin/program-${index}`);
    const object = {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicy',
      metadata: { name: 'large' },
      spec: {
        mode: 'protect',
        rulesByContainer: Object.fromEntries(
          Array.from({ length: 30 }, (_, index) => [`c${index}`, { executables: { allowed } }]),
        ),
      },
    };
    expect(await admit(WORKLOAD_POLICIES, object)).toBeUndefined();
    expect(parseWorkloadPolicy(object).ok).toBe(true);
  });

  it('let a list pass where a time belongs, which api/ refuses', async () => {
    const object = {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicy',
      metadata: { name: 'web' },
      spec: { mode: 'monitor' },
      status: { nodesWithIssues: { node: { code: 'Missing', message: '', since: [] } } },
    };
    expect(await admit(WORKLOAD_POLICIES, object)).toBeUndefined();
    expect(parseWorkloadPolicy(object).ok).toBe(false);
    const since = { code: 'Missing', message: '', since: 5 };
    expect(
      await admit(WORKLOAD_POLICIES, { ...object, status: { nodesWithIssues: { node: since } } }),
    ).toContain('must be of type');
  });

  it('known gap: rules that are null are dropped unsaid by the API server, so the container is not named; api/ refuses them', async () => {
    const body = {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicy',
      metadata: { name: 'web' },
      spec: { mode: 'protect', rulesByContainer: { app: null, side: { executables: { allowed: ['/a'] } } } },
    };
    const made = (await plane.admin.client.request({
      ...{ method: 'POST', path: collectionPath(WORKLOAD_POLICIES, NAMESPACE), body },
      query: { dryRun: 'All', fieldValidation: 'Strict' },
    })) as { spec: { rulesByContainer: JsonObject } };
    expect(Object.keys(made.spec.rulesByContainer)).toEqual(['side']);
    expect(parseWorkloadPolicy(body).ok).toBe(false);
  });

  it('fill in the defaults', async () => {
    const made = await plane.admin.client.request({
      method: 'POST',
      path: collectionPath(WORKLOAD_POLICIES, NAMESPACE),
      query: { dryRun: 'All' },
      body: {
        apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
        kind: 'WorkloadPolicy',
        metadata: { name: 'web' },
        spec: { mode: 'monitor', rulesByContainer: { app: { executables: {} } } },
      },
    });
    expect(made).toMatchObject({
      spec: {
        unlistedContainers: 'allow',
        rulesByContainer: { app: { executables: { otherMountNamespaces: 'deny' } } },
      },
    });
  });
});
