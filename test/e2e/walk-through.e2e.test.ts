import { POLICY_LABEL, PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import { yamlText } from '@runtime-enforcer/api/yaml-text';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { renderChart } from '../chart/render-chart.ts';
import { eventually } from '../runtime/eventually.ts';
import { noteState } from './diagnosis.ts';
import { type ForbiddenLoop, startForbiddenLoop } from './forbidden-loop.ts';
import { AGENTS, CONTROLLERS, helm, install, NAMESPACE, RELEASE } from './installation.ts';
import { type Person, person } from './person.ts';
import { policyObject } from './policy-object.ts';
import { agentPids } from './product-pods.ts';
import { startPrometheus } from './prometheus.ts';
import { startWholeCluster, type WholeCluster } from './whole-cluster.ts';
import { boundPod, CAT, deployment, LOOP_PATHS, LS, SLEEP } from './workload.ts';

const TENANTS = 'shop';
const WORKLOAD = 'opensuse-deployment';
const TARGET = `deployment/${WORKLOAD}`;
const CONTAINER = 'opensuse';
const POLICY = `deploy-${WORKLOAD}`;
const FORBIDDEN = CAT;
/** That of the shell of kubectl exec, when the runtime may not start a program. */
const DENIED = /operation not permitted/i;

const UNINSTALL_BUDGET_MS = 60_000;

interface PolicyStatus {
  readonly violations?: readonly { id: number; executablePath: string; action: string; podName: string }[];
  readonly acknowledgedViolations?: readonly { violation: { id: number }; reason: string }[];
  readonly violationCount?: number;
  readonly activeViolationCount?: number;
  readonly phase?: string;
}
interface Rules {
  readonly mode?: string;
  readonly rulesByContainer?: Readonly<Record<string, { executables?: { allowed?: readonly string[] } }>>;
}

let cluster: WholeCluster;
let tenant: Person;
let operator: Person;
let loop: ForbiddenLoop;

beforeAll(async () => {
  cluster = await startWholeCluster(TENANTS);
  tenant = person(cluster, TENANTS);
  operator = person(cluster, NAMESPACE);
  await tenant.kubectl(`create namespace ${TENANTS}`);
});
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await noteState(cluster, task.name);
});
afterAll(async () => {
  await cluster.stop();
});

const allowedIn = (spec: unknown): readonly string[] =>
  (spec as Rules).rulesByContainer?.[CONTAINER]?.executables?.allowed?.toSorted() ?? [];
const statusOf = (object: object): PolicyStatus =>
  'status' in object ? (object.status as PolicyStatus) : {};
const specOf = (object: object): Rules => ('spec' in object ? (object.spec as Rules) : {});

async function agentPid(): Promise<string> {
  return (await agentPids(cluster))[0] ?? expect.fail('no agent runs on the node');
}

it('is installed by helm: a controller, and an agent on the node', async () => {
  await install(cluster);
  await operator.kubectl(`rollout status daemonset/${AGENTS} --timeout=60s`);
  await operator.kubectl(`rollout status deployment/${CONTROLLERS} --timeout=60s`);
});

it('learns what a Deployment starts into a proposal that the Deployment owns', async () => {
  await tenant.kubectl('apply -f -', deployment(WORKLOAD, CONTAINER));
  const owners = await tenant.until('workloadpolicyproposal', POLICY, (proposal) => {
    const isLearned = LOOP_PATHS.every((path) => allowedIn(specOf(proposal)).includes(path));
    return isLearned ? proposal.metadata['ownerReferences'] : undefined;
  });
  expect(owners).toMatchObject([
    { apiVersion: 'apps/v1', kind: 'Deployment', name: WORKLOAD, controller: true, blockOwnerDeletion: true },
  ]);
});

it('makes a policy of the proposal', async () => {
  await tenant.plugin(`promote ${POLICY}`);
  const policy = (await tenant.get('workloadpolicy', POLICY)) ?? expect.fail('there is no policy');
  expect(specOf(policy).mode).toBe('monitor');
  expect(allowedIn(specOf(policy))).toEqual(LOOP_PATHS.toSorted());
  expect(policy.metadata.labels).toMatchObject({ [PROMOTED_FROM_LABEL]: POLICY });
  expect(await tenant.get('workloadpolicyproposal', POLICY)).toBeUndefined();
});

it('binds the pods of the workload, and says so', async () => {
  await tenant.plugin(`bind ${TARGET} ${POLICY} --yes --wait --timeout 2m`);
  const template = (await tenant.kubectl(`get ${TARGET} -o yaml`)).split('template:')[1];
  expect(template).toContain(`${POLICY_LABEL}: ${POLICY}`);
  await tenant.until('workloadpolicy', POLICY, (policy) =>
    statusOf(policy).phase === 'Ready' ? true : undefined,
  );
});

it('reports what is not on the list, and lets it run, in monitor mode', async () => {
  expect((await tenant.exec(TARGET, LS, '/')).code).toBe(0);
  expect((await tenant.exec(TARGET, FORBIDDEN, '/etc/passwd')).text).toContain('root:');
  const status = await tenant.until('workloadpolicy', POLICY, (policy) =>
    statusOf(policy).activeViolationCount === 1 ? statusOf(policy) : undefined,
  );
  expect(status.violations).toMatchObject([{ id: 0, executablePath: FORBIDDEN, action: 'monitor' }]);
  expect(status.violationCount).toBe(1);
  expect(await tenant.plugin('violations')).toContain(FORBIDDEN);
});

it('counts what was allowed afterwards as no violation any more', async () => {
  await tenant.plugin(`policy allow ${POLICY} ${CONTAINER} ${FORBIDDEN}`);
  const status = await tenant.until('workloadpolicy', POLICY, (policy) =>
    statusOf(policy).activeViolationCount === 0 ? statusOf(policy) : undefined,
  );
  expect(status.violationCount).toBe(1);
  await tenant.plugin(`policy deny ${POLICY} ${CONTAINER} ${FORBIDDEN}`);
});

it('denies what is not on the list in protect mode, without a restart of the pod', async () => {
  const before = await tenant.kubectl('get pods -o name');
  await tenant.plugin(`policy protect ${POLICY}`);
  await eventually('the list is enforced', async () => {
    const { code, text } = await tenant.exec(TARGET, FORBIDDEN, '/etc/passwd');
    return code !== 0 && DENIED.test(text) ? true : undefined;
  });
  expect((await tenant.exec(TARGET, LS, '/')).code).toBe(0);
  expect(await tenant.kubectl('get pods -o name')).toBe(before);
  await tenant.until('workloadpolicy', POLICY, (policy) =>
    statusOf(policy).violations?.some(({ action, executablePath }) => {
      return action === 'protect' && executablePath === FORBIDDEN;
    })
      ? true
      : undefined,
  );
});

it('raises the alert for a denial in a Prometheus that scrapes the collector', async () => {
  const collectors = await operator.kubectl(
    'get pods -l app.kubernetes.io/component=otel-collector -o jsonpath={.items[*].status.podIP}',
  );
  const rules = await renderChart({ values: { monitoring: { prometheusRule: { enabled: true } } } });
  const { object } =
    rules.find((rendered) => rendered.object.kind === 'PrometheusRule') ??
    expect.fail('the chart has no rules');
  const prometheus = await startPrometheus(
    cluster.user.directory,
    collectors.split(' ').map((address) => `${address}:9090`),
    yamlText({ ...specOf(object) }),
  );
  try {
    const wanted = {
      alertname: 'RuntimeEnforcerExecutableDenied',
      k8s_namespace_name: TENANTS,
      policy_name: POLICY,
    };
    const alert = await eventually(
      'the alert fires',
      async () =>
        (await prometheus.alerts()).find(
          ({ state, labels }) =>
            state === 'firing' && Object.entries(wanted).every(([name, value]) => labels[name] === value),
        ),
      60_000,
    );
    expect(alert.annotations['summary']).toContain(`${TENANTS}/${POLICY}`);
  } finally {
    await prometheus.stop();
  }
});

it('files a violation away with a reason', async () => {
  const policy = (await tenant.get('workloadpolicy', POLICY)) ?? expect.fail('there is no policy');
  for (const { id } of statusOf(policy).violations ?? []) {
    const reason = 'looked-at';
    await tenant.plugin(`policy ack ${POLICY} ${id} --reason ${reason}`);
    await tenant.until('workloadpolicy', POLICY, (object) =>
      statusOf(object).acknowledgedViolations?.some(
        (entry) => entry.violation.id === id && entry.reason === reason,
      )
        ? true
        : undefined,
    );
  }
  await tenant.until('workloadpolicy', POLICY, (object) =>
    statusOf(object).activeViolationCount === 0 ? true : undefined,
  );
});

it('keeps a policy that pods use, and the policy of a running pod', async () => {
  expect(await tenant.refusal(`delete workloadpolicy ${POLICY} --wait=false`)).toContain(WORKLOAD);
  const pods = await tenant.kubectl(`get pods -l ${POLICY_LABEL}=${POLICY} -o name`);
  const pod = pods.trim().split('\n')[0] ?? expect.fail('there is no pod');
  expect(await tenant.refusal(`label ${pod} ${POLICY_LABEL}=another --overwrite`)).toMatch(/polic/i);
});

it('does not start a pod whose policy there is not, until there is', async () => {
  await tenant.kubectl('apply -f -', boundPod('early', 'later', `${LS} / && exec ${SLEEP} 3600`));
  await eventually(
    'an event says why',
    async () =>
      (await tenant.kubectl('get events')).includes('the policy does not exist') ? true : undefined,
    60_000,
  );
  await tenant.kubectl('apply -f -', JSON.stringify(policyObject('later', { main: LOOP_PATHS })));
  await tenant.kubectl('wait --for=condition=Ready pod/early --timeout=120s');
  expect((await tenant.exec('pod/early', FORBIDDEN, '/etc/passwd')).text).toMatch(DENIED);
});

it('denies on while the agent is killed and comes back', async () => {
  loop = await startForbiddenLoop(tenant, 'loop', 'later');
  const before = await agentPid();
  await cluster.node.read('kill', '-9', before);
  expect((await tenant.exec(TARGET, FORBIDDEN, '/etc/passwd')).text).toMatch(DENIED);
  await eventually(
    'another agent runs',
    async () => ((await agentPid()) === before ? undefined : true),
    60_000,
  );
  await operator.kubectl(`rollout status daemonset/${AGENTS} --timeout=120s`);
  expect((await tenant.exec(TARGET, FORBIDDEN, '/etc/passwd')).text).toMatch(DENIED);
  expect((await tenant.exec(TARGET, LS, '/')).code).toBe(0);
});

it('denies on while helm upgrades it, and then learns only where it is to', async () => {
  const { attempts } = await loop.counts();
  await tenant.kubectl('create namespace quiet');
  const names = { key: 'kubernetes.io/metadata.name', operator: 'In', values: [TENANTS] };
  await install(cluster, { learning: { namespaceSelector: { matchExpressions: [names] } } });
  await operator.kubectl(`rollout status daemonset/${AGENTS} --timeout=180s`);
  const quiet = person(cluster, 'quiet');
  await quiet.kubectl('apply -f -', deployment('unlearned', CONTAINER));
  await quiet.kubectl('rollout status deployment/unlearned --timeout=120s');
  await tenant.kubectl('apply -f -', deployment('learned', CONTAINER));
  await tenant.until('workloadpolicyproposal', 'deploy-learned', () => true);
  expect(await quiet.get('workloadpolicyproposal', 'deploy-unlearned')).toBeUndefined();
  const counts = await loop.counts();
  expect(counts.passed).toBe(0);
  expect(counts.attempts).toBeGreaterThan(attempts + 20);
});

it('denies nothing any more once it is uninstalled, and leaves the resources', async () => {
  await helm(cluster, 'uninstall', RELEASE, '--wait', '--timeout', '3m');
  // Helm waits for the DaemonSet to be gone, not for its pods, and these release the node as they end.
  await eventually(
    'the loop passes',
    async () => ((await loop.counts()).passed > 0 ? true : undefined),
    UNINSTALL_BUDGET_MS,
  );
  expect((await tenant.exec(TARGET, FORBIDDEN, '/etc/passwd')).text).toContain('root:');
  expect(await tenant.get('workloadpolicy', POLICY)).toBeDefined();
});
