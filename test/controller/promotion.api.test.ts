import { setTimeout as sleep } from 'node:timers/promises';
import { EVIDENCE_ANNOTATION, PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector } from '@runtime-enforcer/kube/reflector';
import { collectionPath, EVENTS, objectPath } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { createAll } from './chart-objects.ts';
import { type ControllerPlace, controllerPlace, type ControllerProcess } from './controller-process.ts';
import { markForPromotion, objectOf, propose, rulesFor } from './proposals.ts';

const NAMESPACE = 'shop';
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
/** A process needs a second or more to start; each step of a promotion is cut in the tests beside the code. */
const KILLING_MS = 25_000;
/** For promoting all that the killed ones have left, also on a machine that is busy. */
const PROMOTED_BUDGET_MS = 120_000;
const MIN_KILLS = 3;

let plane: ControlPlane;
let place: ControllerPlace;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  await plane.serviceAccount(NAMESPACE, 'default');
  place = await controllerPlace(plane);
});
afterAll(async () => {
  await place.stop();
  await plane.stop();
});

const policyOf = async (name: string) =>
  await objectOf(plane.admin.client, WORKLOAD_POLICIES, NAMESPACE, name);
const proposalOf = async (name: string) =>
  await objectOf(plane.admin.client, WORKLOAD_POLICY_PROPOSALS, NAMESPACE, name);

/** Somebody else's rule. */
const REFUSING_POLICY = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'full' },
    spec: {
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: ['runtimeenforcer.kubewarden.io'],
            apiVersions: ['v1alpha1'],
            operations: ['CREATE'],
            resources: ['workloadpolicies'],
          },
        ],
      },
      validations: [{ expression: "object.metadata.namespace != 'full'", message: 'not on a Friday' }],
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'full' },
    spec: { policyName: 'full', validationActions: ['Deny'] },
  },
];

interface Conditions {
  readonly conditions?: readonly {
    readonly type: string;
    readonly reason: string;
    readonly message: string;
  }[];
}

async function promoted(name: string): Promise<KubeObject> {
  return await eventually(`${name} is promoted`, async () =>
    (await proposalOf(name)) === undefined ? await policyOf(name) : undefined,
  );
}

async function failure(name: string, reason: string) {
  return await eventually(`${name} fails by ${reason}`, async () => {
    const { conditions } = ((await proposalOf(name))?.['status'] ?? {}) as Conditions;
    return conditions?.find((each) => each.type === 'PromotionFailed' && each.reason === reason);
  });
}

async function reasonsOf(name: string): Promise<string[]> {
  const { items } = (await plane.admin.client.request({
    path: collectionPath(EVENTS, NAMESPACE),
    query: { fieldSelector: `involvedObject.name=${name}` },
  })) as { readonly items: readonly { readonly reason: string }[] };
  return items.map(({ reason }) => reason);
}

describe('one controller', () => {
  let controller: ControllerProcess;
  beforeAll(async () => {
    controller = await place.start();
    await controller.ready();
  });
  afterAll(async () => await controller.stop());

  it('makes the policy with the rights of the chart alone, and says so', async () => {
    await propose(plane.admin.client, NAMESPACE, 'deploy-web');
    await markForPromotion(plane.admin.client, NAMESPACE, 'deploy-web', 'protect');
    const policy = await promoted('deploy-web');
    expect(policy).toMatchObject({
      metadata: { labels: { [PROMOTED_FROM_LABEL]: 'deploy-web' } },
      spec: { mode: 'protect', rulesByContainer: rulesFor('deploy-web') },
    });
    expect(JSON.parse(policy.metadata.annotations?.[EVIDENCE_ANNOTATION] ?? '')).toMatchObject({
      paths: 2,
      observedPaths: 0,
    });
    await eventually('there is an Event', async () =>
      (await reasonsOf('deploy-web')).includes('Promoted') ? true : undefined,
    );
  });

  it('tells what is in the way, and promotes when it goes', async () => {
    const { client } = plane.admin;
    await client.request({
      method: 'POST',
      path: collectionPath(WORKLOAD_POLICIES, NAMESPACE),
      body: {
        apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
        kind: 'WorkloadPolicy',
        metadata: { name: 'deploy-taken' },
        spec: { mode: 'monitor' },
      },
    });
    await propose(client, NAMESPACE, 'deploy-taken', 'protect');
    expect((await failure('deploy-taken', 'PolicyExists')).message).toContain('delete it to have');
    await eventually('there is an Event', async () =>
      (await reasonsOf('deploy-taken')).includes('PromotionFailed') ? true : undefined,
    );
    await client.request({
      method: 'DELETE',
      path: objectPath({ resource: WORKLOAD_POLICIES, namespace: NAMESPACE, name: 'deploy-taken' }),
    });
    expect(await promoted('deploy-taken')).toMatchObject({ spec: { mode: 'protect' } });
  });

  it('tells of a name that no label can hold, and writes nothing more', async () => {
    const name = `deploy-${'w'.repeat(60)}`;
    const { client } = plane.admin;
    await propose(client, NAMESPACE, name, 'monitor');
    expect((await failure(name, 'NameTooLong')).message).toContain('a shorter name');
    const before = (await proposalOf(name))?.metadata.resourceVersion;
    await sleep(1_500);
    expect((await proposalOf(name))?.metadata.resourceVersion).toBe(before);
    await markForPromotion(client, NAMESPACE, name, null);
    await eventually('the condition goes with the label', async () => {
      const { conditions } = ((await proposalOf(name))?.['status'] ?? {}) as Conditions;
      return (conditions ?? []).length === 0 ? true : undefined;
    });
  });

  it('tells what the API server said of a policy that it refused', async () => {
    const { client } = plane.admin;
    await plane.serviceAccount('full', 'default');
    await createAll(client, REFUSING_POLICY);
    await eventually('it refuses', async () => {
      const body = {
        apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
        kind: 'WorkloadPolicy',
        metadata: { name: 'probe' },
        spec: { mode: 'monitor' },
      };
      const path = collectionPath(WORKLOAD_POLICIES, 'full');
      return await client.request({ method: 'POST', path, query: { dryRun: 'All' }, body }).then(
        () => undefined,
        () => true,
      );
    });
    await propose(client, 'full', 'deploy-web', 'monitor');
    const condition = await eventually('it is told', async () => {
      const proposal = await objectOf(client, WORKLOAD_POLICY_PROPOSALS, 'full', 'deploy-web');
      return ((proposal?.['status'] ?? {}) as Conditions).conditions?.[0];
    });
    expect(condition).toMatchObject({
      reason: 'PolicyRefused',
      message: expect.stringContaining('not on a Friday') as string,
    });
  });

  it('removes what learning makes again after the promotion', async () => {
    await propose(plane.admin.client, NAMESPACE, 'deploy-again', 'monitor');
    const { metadata } = await promoted('deploy-again');
    await propose(plane.admin.client, NAMESPACE, 'deploy-again');
    expect((await promoted('deploy-again')).metadata.uid).toBe(metadata.uid);
  });

  it('is quick', async () => {
    const { client } = plane.admin;
    const times: number[] = [];
    for (let index = 0; index < 60; index++) {
      const name = `deploy-quick-${index}`;
      await propose(client, NAMESPACE, name);
      const start = performance.now();
      await markForPromotion(client, NAMESPACE, name, 'monitor');
      while ((await policyOf(name)) === undefined) await sleep(2);
      times.push(performance.now() - start);
    }
    times.sort((one, other) => one - other);
    const [median = 0, slowest = 0] = [times[30], times.at(-1)];
    console.log(`promotion: median ${median.toFixed(0)} ms, slowest of 60 ${slowest.toFixed(0)} ms`);
    expect(slowest).toBeLessThan(1_000);
  });
});

describe('controllers that are killed', () => {
  it(`lose no promotion and make none twice (seed ${SEED})`, async () => {
    const { client } = plane.admin;
    const chance = randomFrom(SEED);
    // Every policy that ever was, and how often.
    const added = new Map<string, number>();
    const watch = reflector({
      client,
      resource: WORKLOAD_POLICIES,
      namespace: NAMESPACE,
      store: objectStore<string>({ transform: ({ metadata }) => metadata.uid }),
      onChange: ({ type, key }) => {
        if (type === 'added') added.set(key, (added.get(key) ?? 0) + 1);
      },
    });
    watch.start();
    await watch.synced;

    const end = performance.now() + KILLING_MS;
    const names: string[] = [];
    const load = (async () => {
      while (performance.now() < end) {
        const name = `deploy-load-${names.length}`;
        await propose(client, NAMESPACE, name, 'monitor');
        names.push(name);
        await sleep(chance() * 50);
      }
    })();
    let kills = 0;
    for (; performance.now() < end; kills++) {
      const controller = await place.start();
      await controller.ready();
      await sleep(chance() * 600);
      await controller.stop('SIGKILL');
    }
    await load;
    console.log(`killed ${kills} times under ${names.length} promotions, seed ${SEED}`);
    expect(kills).toBeGreaterThanOrEqual(MIN_KILLS);
    const last = await place.start();
    await eventually(
      'all proposals are promoted',
      async () => {
        const { items } = (await client.request({
          path: collectionPath(WORKLOAD_POLICY_PROPOSALS, NAMESPACE),
        })) as { readonly items: readonly KubeObject[] };
        return items.every(({ metadata }) => !names.includes(metadata.name)) ? true : undefined;
      },
      PROMOTED_BUDGET_MS,
    );
    await last.stop();
    await watch.stop();
    const wrong = names.filter((name) => added.get(`${NAMESPACE}/${name}`) !== 1);
    expect(wrong).toEqual([]);
    expect(names.length).toBeGreaterThan(100);
  }, 300_000);
});

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
