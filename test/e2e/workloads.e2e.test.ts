import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ACKNOWLEDGE_ANNOTATION_PREFIX, POLICY_LABEL, PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { SHORT_KINDS } from '@runtime-enforcer/api/workload';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { TOOLBOX_IMAGE } from '../images/names.ts';
import { noteState } from './diagnosis.ts';
import { startForbiddenLoop } from './forbidden-loop.ts';
import { AGENTS, install, NAMESPACE } from './installation.ts';
import { NODE_NAME, STATIC_PODS } from './node-files.ts';
import { note } from './notes.ts';
import { type Person, person } from './person.ts';
import { policyObject } from './policy-object.ts';
import { agentMetrics, agentsAreReady, podsOf } from './product-pods.ts';
import { startWholeCluster, type WholeCluster } from './whole-cluster.ts';
import { barePod, container, KINDS, LISTED_WORK, podTemplate, workload } from './workload-kinds.ts';
import { CAT, LOOP_PATHS, LS, SHELL, SLEEP } from './workload.ts';

const TENANTS = 'shop';
/** Restricts the container `main`, and lets others alone. */
const LENIENT = 'lenient';
/** Restricts the containers that it names, and lets no other start anything. */
const STRICT = 'strict';
const DENIED = /operation not permitted/i;
const STARTS_MS = 120_000;
const CROWD = 50;
const LOOKED_AT_MS = 5_000;

let cluster: WholeCluster;
let tenant: Person;
let operator: Person;

beforeAll(async () => {
  cluster = await startWholeCluster(TENANTS);
  tenant = person(cluster, TENANTS);
  operator = person(cluster, NAMESPACE);
  await tenant.kubectl(`create namespace ${TENANTS}`);
  await install(cluster);
  await apply(policyObject(LENIENT, { main: LOOP_PATHS }));
  const lists = { main: LOOP_PATHS, prepare: [SHELL, LS], beside: LOOP_PATHS };
  await apply(policyObject(STRICT, lists, { unlistedContainers: 'deny' }));
});
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await noteState(cluster, task.name);
});
afterAll(async () => {
  await cluster.stop();
});

async function apply(...objects: readonly object[]): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  await tenant.kubectl('apply -f -', JSON.stringify(list));
}

/** A running pod with this label `app`, as kubectl names it. */
async function runningPod(app: string): Promise<string> {
  return await eventually(
    `a pod of ${app} runs`,
    async () => {
      const text = await tenant.kubectl(
        `get pods -l app=${app} --field-selector=status.phase=Running -o name`,
      );
      return text.split('\n').find((line) => line !== '');
    },
    STARTS_MS,
  );
}

/** What is listed runs in a container, and nothing else. */
async function isRestricted(pod: string, name = 'main'): Promise<void> {
  expect((await tenant.exec(pod, '-c', name, '--', LS, '/')).code).toBe(0);
  const { code, text } = await tenant.exec(pod, '-c', name, '--', CAT, '/etc/passwd');
  expect(code).not.toBe(0);
  expect(text).toMatch(DENIED);
}

/** Waits for what a pod's status says, somewhere, of why a container does not run. */
async function saysWhy(pod: string, words: RegExp): Promise<void> {
  await eventually(
    `the status of pod ${pod} says ${words.source}`,
    async () => (words.test(JSON.stringify((await tenant.get('pod', pod))?.['status'])) ? true : undefined),
    STARTS_MS,
  );
}

interface PolicyStatus {
  readonly violationCount?: number;
  readonly violations?: readonly { readonly id: number; readonly podName: string }[];
}

async function statusOf(name: string): Promise<PolicyStatus> {
  return (await tenant.get('workloadpolicy', name))?.['status'] ?? {};
}

describe('what makes a pod', () => {
  beforeAll(async () => {
    const all = KINDS.flatMap((kind) => [
      workload(kind, `bound-${SHORT_KINDS[kind]}`, { policy: LENIENT }),
      workload(kind, `free-${SHORT_KINDS[kind]}`, {}),
    ]);
    await apply(...all, barePod('bound-pod', { policy: LENIENT }));
  });

  it.each(KINDS)('restricts the pod of a %s', async (kind) => {
    await isRestricted(await runningPod(`bound-${SHORT_KINDS[kind]}`));
  });

  it.each(KINDS)('learns what the pod of a %s starts', async (kind) => {
    const short = SHORT_KINDS[kind];
    await tenant.until(
      'workloadpolicyproposal',
      `${short}-free-${short}`,
      (proposal) => {
        const text = JSON.stringify(proposal['spec']);
        return LOOP_PATHS.every((path) => text.includes(`"${path}"`)) ? true : undefined;
      },
      STARTS_MS,
    );
  });

  it('restricts a pod that nothing made', async () => {
    await isRestricted(await runningPod('bound-pod'));
  });

  it('restricts a static pod', async () => {
    const { metadata, spec } = podTemplate('static', { policy: LENIENT });
    const place = { namespace: TENANTS };
    const manifest = JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, ...place }, spec },
    });
    await cluster.node.read('sh', '-c', `printf %s "$1" > ${STATIC_PODS}/static.json`, 'sh', manifest);
    await runningPod('static');
    await isRestricted(`pod/static-${NODE_NAME}`);
    await cluster.node.read('rm', `${STATIC_PODS}/static.json`);
  });

  it.each([{ hostNetwork: true }, { hostPID: true }, { shareProcessNamespace: true }])(
    'restricts a pod with %j',
    async (spec) => {
      const name = `with-${Object.keys(spec).join().toLowerCase()}`;
      await apply(barePod(name, { policy: LENIENT, spec }));
      await isRestricted(await runningPod(name));
    },
  );
});

describe('the containers of a pod', () => {
  it('restricts each by its own list: what prepares, what runs beside, and the main one', async () => {
    const spec = {
      initContainers: [
        container('prepare', `${LS} /`),
        container('beside', LISTED_WORK, { restartPolicy: 'Always' }),
      ],
    };
    await apply(barePod('three', { policy: STRICT, spec }));
    await tenant.kubectl('wait --for=condition=Ready pod/three --timeout=120s');
    await isRestricted('pod/three');
    await isRestricted('pod/three', 'beside');
  });

  it('does not let an init container run on when it starts what is not listed', async () => {
    const spec = { initContainers: [container('prepare', `exec ${SLEEP} 1`)], restartPolicy: 'Never' };
    await apply(barePod('unprepared', { policy: STRICT, spec }));
    await saysWhy('unprepared', /"phase":"Failed"/);
    expect(await tenant.kubectl('logs unprepared -c prepare')).toMatch(DENIED);
  });

  it('starts no container that a strict policy does not name', async () => {
    const spec = { containers: [container('main', LISTED_WORK), container('other', LISTED_WORK)] };
    await apply(barePod('stranger', { policy: STRICT, spec }));
    await saysWhy('stranger', DENIED);
    await apply(barePod('guest', { policy: LENIENT, spec }));
    await tenant.kubectl('wait --for=condition=Ready pod/guest --timeout=120s');
    expect((await tenant.exec('pod/guest', '-c', 'other', '--', CAT, '/etc/passwd')).text).toContain('root:');
    await isRestricted('pod/guest');
  });

  it('treats the container of kubectl debug as any other that the policy does not name', async () => {
    const debug = (pod: string): string =>
      `debug ${pod} --image=${TOOLBOX_IMAGE} --container=looker --target=main -- ${SLEEP} 3600`;
    await tenant.kubectl(debug('three'));
    await saysWhy('three', DENIED);
    await tenant.kubectl(debug('guest'));
    await eventually(
      'the debug container runs',
      async () =>
        (await tenant.exec('pod/guest', '-c', 'looker', '--', CAT, '/etc/passwd')).code === 0
          ? true
          : undefined,
      STARTS_MS,
    );
    await isRestricted('pod/guest');
  });

  it('denies a probe that is not listed, and lets one that is decide', async () => {
    const probing = (path: string): object => ({
      readinessProbe: { exec: { command: [path, '/etc/passwd'] }, periodSeconds: 2 },
    });
    const spec = (path: string): object => ({ containers: [container('main', LISTED_WORK, probing(path))] });
    await apply(
      barePod('probed', { policy: LENIENT, spec: spec(LS) }),
      barePod('misprobed', { policy: LENIENT, spec: spec(CAT) }),
    );
    await tenant.kubectl('wait --for=condition=Ready pod/probed --timeout=120s');
    await eventually(
      'an event tells why the probe fails',
      async () =>
        DENIED.test(await tenant.kubectl('get events --field-selector involvedObject.name=misprobed'))
          ? true
          : undefined,
      STARTS_MS,
    );
    expect(await tenant.kubectl('get pod misprobed')).toContain('0/1');
  });
});

describe('changes', () => {
  it('restricts the pods that a rolling update brings', async () => {
    const target = `bound-${SHORT_KINDS.Deployment}`;
    const before = await runningPod(target);
    await tenant.kubectl(`set env deployment/${target} ROUND=2`);
    await tenant.kubectl(`rollout status deployment/${target} --timeout=120s`);
    await tenant.kubectl(`wait --for=delete ${before} --timeout=60s`);
    await isRestricted(await runningPod(target));
  });

  it('labels new pods of a workload whose policy says so', async () => {
    await apply(policyObject('deploy-auto', { main: LOOP_PATHS }, { binding: { autoBind: true } }));
    await apply(workload('Deployment', 'auto', {}));
    const pod = await runningPod('auto');
    expect(await tenant.kubectl(`get ${pod} -o yaml`)).toContain(`${POLICY_LABEL}: deploy-auto`);
    await isRestricted(pod);
  });

  it('needs nothing but kubectl, from learning to learning again', async () => {
    const name = `${SHORT_KINDS.Deployment}-free-deploy`;
    const target = 'deployment/free-deploy';
    await tenant.kubectl(`label workloadpolicyproposal ${name} ${PROMOTE_LABEL}=monitor`);
    await tenant.until('workloadpolicy', name, () => true);
    const label = (value: string | null): string =>
      JSON.stringify({ spec: { template: { metadata: { labels: { [POLICY_LABEL]: value } } } } });
    await tenant.kubectl(`patch ${target} -p ${label(name)}`);
    await tenant.kubectl(`rollout status ${target} --timeout=120s`);
    await tenant.kubectl(`patch workloadpolicy ${name} --type=merge -p {"spec":{"mode":"protect"}}`);
    await eventually('the list is enforced', async () =>
      DENIED.test((await tenant.exec(target, CAT, '/etc/passwd')).text) ? true : undefined,
    );
    const { id } = await eventually(
      'the denial is a violation',
      async () => (await statusOf(name)).violations?.[0],
    );
    await tenant.kubectl(`annotate workloadpolicy ${name} ${ACKNOWLEDGE_ANNOTATION_PREFIX}${id}=looked-at`);
    await tenant.until('workloadpolicy', name, (object) =>
      JSON.stringify(object['status']).includes('"reason":"looked-at"') ? true : undefined,
    );
    await tenant.kubectl(`patch ${target} -p ${label(null)}`);
    await tenant.kubectl(`rollout status ${target} --timeout=120s`);
    await eventually('no pod names the policy', async () =>
      (await tenant.kubectl(`get pods -l ${POLICY_LABEL}=${name} -o name`)) === '' ? true : undefined,
    );
    await tenant.kubectl(`delete workloadpolicy ${name}`);
    await tenant.kubectl(`rollout restart ${target}`);
    await tenant.until('workloadpolicyproposal', name, () => true, STARTS_MS);
  });

  it('takes the policy of one namespace in another', async () => {
    const found = (await tenant.get('workloadpolicy', LENIENT)) ?? expect.fail('there is no policy');
    const { apiVersion, kind, spec } = found;
    const exported = JSON.stringify({ apiVersion, kind, metadata: { name: LENIENT }, spec });
    const others = person(cluster, 'market');
    await tenant.kubectl('create namespace market');
    await others.kubectl('apply -f -', exported);
    await others.kubectl('apply -f -', JSON.stringify(barePod('exported', { policy: LENIENT })));
    await others.kubectl('wait --for=condition=Ready pod/exported --timeout=120s');
    expect((await others.exec('pod/exported', CAT, '/etc/passwd')).text).toMatch(DENIED);
  });

  it('binds a pod that started while no agent was there as soon as there is one', async () => {
    const placed = (selector: object | null): string =>
      JSON.stringify({ spec: { template: { spec: { nodeSelector: selector } } } });
    await operator.kubectl(`patch daemonset ${AGENTS} -p ${placed({ nowhere: 'true' })}`);
    await eventually(
      'there is no agent',
      async () => ((await podsOf(operator, 'agent')).length === 0 ? true : undefined),
      STARTS_MS,
    );
    const loop = await startForbiddenLoop(tenant, 'early', LENIENT);
    await eventually('nothing restricts the pod', async () =>
      (await loop.counts()).passed > 0 ? true : undefined,
    );
    await operator.kubectl(`patch daemonset ${AGENTS} -p ${placed(null)}`);
    await agentsAreReady(operator);
    const { attempts, passed } = await loop.counts();
    await delay(LOOKED_AT_MS);
    const later = await loop.counts();
    expect(later.passed).toBe(passed);
    expect(later.attempts).toBeGreaterThan(attempts);
    const metrics = await agentMetrics(operator);
    const [, late] = /^runtime_enforcer_containers_bound_late_total ([0-9]+)$/m.exec(metrics) ?? [];
    await note(`containers bound late, as the agent counts: ${late ?? 'none'}`);
    expect(Number(late)).toBeGreaterThan(0);
  });

  it(`restricts ${CROWD} pods on the node, and hears of each`, async () => {
    const spec = { containers: [container('main', `${CAT} /etc/passwd; exec ${SLEEP} 3600`)] };
    await apply(
      policyObject('crowd', { main: LOOP_PATHS }),
      workload('Deployment', 'crowd', { policy: 'crowd', spec, replicas: CROWD }),
    );
    const start = performance.now();
    await eventually(
      'all pods are available',
      async () =>
        (await tenant.kubectl('get deployment crowd -o jsonpath={.status.availableReplicas}')) ===
        String(CROWD)
          ? true
          : undefined,
      600_000,
    );
    await note(`${CROWD} pods: available after ${((performance.now() - start) / 1_000).toFixed(0)} s`);
    const heard = await eventually(
      'a violation of each pod is reported',
      async () => {
        const { violations = [] } = await statusOf('crowd');
        return new Set(violations.map(({ podName }) => podName)).size === CROWD ? violations : undefined;
      },
      STARTS_MS,
    );
    expect(heard).toHaveLength(CROWD);
    await tenant.kubectl('delete deployment crowd');
  });
});

describe('the rights of the agent', () => {
  const ALL = 'BPF, PERFMON, SYS_RESOURCE, SYS_PTRACE';
  const without = (capability: string): string[] => ALL.split(', ').filter((each) => each !== capability);

  it.each([
    { capability: 'nothing', says: 'This node can run the agent.' },
    { capability: 'BPF', says: 'This process may not use BPF.' },
    { capability: 'PERFMON', says: 'This process may not use BPF.' },
    { capability: 'SYS_RESOURCE', says: 'This node can run the agent.' },
  ])(
    'agent check, as the installation page has it, without $capability: $says',
    async ({ capability, says }) => {
      const page = await readFile(join(REPOSITORY, 'docs/install.md'), 'utf8');
      const [, job = expect.fail('the page has no Job')] =
        /^```yaml\n(# check\.yaml[^]*?)^```/m.exec(page) ?? [];
      const image = await operator.kubectl(
        `get daemonset ${AGENTS} -o jsonpath={.spec.template.spec.containers[0].image}`,
      );
      const name = `check-${capability.toLowerCase().replace('_', '-')}`;
      const text = job
        .replace('nodeName: NODE', `nodeName: ${NODE_NAME}`)
        .replace('name: runtime-enforcer-check', `name: ${name}`)
        .replace(/image: .*/, `image: ${image}`)
        .replace(ALL, without(capability).join(', '));
      await operator.kubectl('apply -f -', text);
      await eventually(
        'the check has ended',
        async () => {
          const log = await operator.kubectl(`logs -l job-name=${name} --tail=-1`);
          if (!log.includes('the agent')) return undefined;
          expect(log).toContain(says);
          return true;
        },
        STARTS_MS,
      );
    },
  );

  it('starts no bound container without SYS_PTRACE, and says what was not permitted', async () => {
    const path = '/spec/template/spec/containers/0/securityContext/capabilities/add';
    const patch = (capabilities: readonly string[]): string =>
      JSON.stringify([{ op: 'replace', path, value: capabilities }]);
    await operator.kubectl(`patch daemonset ${AGENTS} --type=json -p ${patch(without('SYS_PTRACE'))}`);
    await agentsAreReady(operator);
    await apply(barePod('unseen', { policy: LENIENT }));
    await eventually(
      'an event says why the pod does not start',
      async () =>
        /permission denied/i.test(
          await tenant.kubectl('get events --field-selector involvedObject.name=unseen'),
        )
          ? true
          : undefined,
      STARTS_MS,
    );
    await operator.kubectl(`patch daemonset ${AGENTS} --type=json -p ${patch(without(''))}`);
    await agentsAreReady(operator);
    await tenant.kubectl('wait --for=condition=Ready pod/unseen --timeout=180s');
  });
});
