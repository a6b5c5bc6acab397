import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { type ApiClient, apiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { type PooledConfig, pooledConfig } from '@runtime-enforcer/kube/pooled-config';
import { runAgentCommand, startAgent, type AgentProcess } from '../runtime/agent-process.ts';
import { openCri } from '../runtime/cri.ts';
import { eventually } from '../runtime/eventually.ts';
import { mustBeDenied, mustRun } from '../runtime/expectations.ts';
import { removePod, restartContainer, runPod, type Pod } from '../runtime/pod.ts';
import { stormCounts } from '../runtime/storm.ts';
import { forwardHostPorts, type HostPorts } from './host-network.ts';
import { reportedOccurrences, reportedViolation, withObserver } from './observer.ts';
import {
  ADMIN_KUBECONFIG,
  AGENT_CERTIFICATES,
  AGENT_KUBECONFIG,
  AGENT_NAMESPACE,
  AGENT_POD,
  COLLECTOR_CERTIFICATES,
  NODE_NAME,
  SCENE_FILE,
  type Scene,
} from './scene.ts';

const NAMESPACE = 'shop';
const PAUSE = '/opt/test/pause';
const HASH = '5d59d67564';
const PROPOSALS = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/shop/workloadpolicyproposals';
const POLICIES = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/shop/workloadpolicies';
/** Where an agent answers; the second one cannot have an address of its own here, as pods have. */
const PORTS = { grpc: 50_051, probes: 8_081 };
const OTHER_PORTS = { grpc: 50_052, probes: 8_082 };
const OTHER_AGENT_POD = 'agent-y';
const STORM = '/opt/test/execstorm';
const FORBIDDEN = '/opt/test/tiny';
/** One exec of the runtime may take half a minute, so a storm is made of short ones. */
const STORM_SECONDS = 5;
const STOP_BUDGET_MS = 10_000;
/** Both learners and the fallback of a busy machine need their time. */
const SEEN_BUDGET_MS = 60_000;

interface Made {
  readonly metadata: { readonly name: string; readonly uid: string };
}
interface OwnerReference {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

describe('the agent of a cluster', () => {
  const cri = openCri();
  let scene: Scene;
  let ports: HostPorts;
  let pool: PooledConfig;
  let api: ApiClient;
  let agent: AgentProcess;
  let deployment: Made;
  let replicaSet: Made;
  const pods: Pod[] = [];

  before(async () => {
    scene = JSON.parse(await readFile(SCENE_FILE, 'utf8')) as Scene;
    ports = await forwardHostPorts([scene.apiPort, scene.collectorPort, scene.collectorMetricsPort]);
    pool = pooledConfig((config) => config.loadFromFile(ADMIN_KUBECONFIG));
    api = apiClient(pool);
    await make('/api/v1/namespaces', { metadata: { name: NAMESPACE } });
    await make('/api/v1/namespaces/shop/serviceaccounts', { metadata: { name: 'default' } });
    deployment = await make('/apis/apps/v1/namespaces/shop/deployments', {
      metadata: { name: 'web' },
      spec: workloadSpec({ app: 'web' }),
    });
    replicaSet = await make('/apis/apps/v1/namespaces/shop/replicasets', {
      metadata: {
        name: `web-${HASH}`,
        ownerReferences: [ownedBy('apps/v1', 'Deployment', deployment)],
      },
      spec: workloadSpec({ app: 'web', 'pod-template-hash': HASH }),
    });
    agent = await start();
  });
  after(async () => {
    for (const pod of pods) await removePod(cri, pod).catch(() => undefined);
    await agent.signal('SIGTERM');
    await pool.close();
    ports.close();
    cri.close();
  });

  const start = async (podName = AGENT_POD, { grpc, probes } = PORTS): Promise<AgentProcess> =>
    await startAgent(
      [
        ...['--kubeconfig', AGENT_KUBECONFIG, '--grpc-mtls-cert-dir', AGENT_CERTIFICATES],
        ...[
          '--learning-namespace-selector',
          `{"matchLabels":{"kubernetes.io/metadata.name":"${NAMESPACE}"}}`,
        ],
        ...['--grpc-port', String(grpc), '--health-probe-bind-address', `:${probes}`],
        ...['--otlp-endpoint', `https://127.0.0.1:${scene.collectorPort}`],
        ...['--otlp-ca-cert', `${COLLECTOR_CERTIFICATES}/ca.crt`],
        ...['--otlp-client-cert', `${COLLECTOR_CERTIFICATES}/tls.crt`],
        ...['--otlp-client-key', `${COLLECTOR_CERTIFICATES}/tls.key`],
      ],
      { NODE_NAME, POD_NAME: podName, POD_NAMESPACE: AGENT_NAMESPACE },
    );
  const warnings = (): string =>
    JSON.stringify(agent.log.filter(({ level }) => level === 'warn' || level === 'error'));

  async function make(path: string, body: object): Promise<Made> {
    return (await api.request({ method: 'POST', path, body })) as Made;
  }

  /** A pod as the ReplicaSet's controller makes it in the API, and as kubelet then runs it. */
  async function runWebPod(
    suffix: string,
    script: string,
    labels: Record<string, string> = {},
  ): Promise<Pod> {
    const name = `web-${HASH}-${suffix}`;
    const allLabels = { app: 'web', 'pod-template-hash': HASH, ...labels };
    const { metadata } = await make('/api/v1/namespaces/shop/pods', {
      metadata: {
        name,
        labels: allLabels,
        ownerReferences: [ownedBy('apps/v1', 'ReplicaSet', replicaSet)],
      },
      spec: { ...POD_SPEC, nodeName: NODE_NAME },
    });
    const pod = await runPod(cri, {
      ...{ name, namespace: NAMESPACE, uid: metadata.uid, labels: allLabels },
      containers: [{ name: 'main', command: ['/bin/sh', '-c', script] }],
    });
    pods.push(pod);
    return pod;
  }

  async function probe(path: string, { probes } = PORTS): Promise<{ status: number; text: string }> {
    const response = await fetch(`http://127.0.0.1:${probes}${path}`);
    return { status: response.status, text: await response.text() };
  }

  async function seenByCollector(labels: Readonly<Record<string, string>>): Promise<number> {
    return await eventually(
      () =>
        `the collector counts violations with ${JSON.stringify(labels)}; the agent's warnings: ${warnings()}`,
      async () => {
        const response = await fetch(`http://127.0.0.1:${scene.collectorMetricsPort}/metrics`);
        for (const line of (await response.text()).split('\n')) {
          const match = /^runtime_enforcer_violations_total\{(.*)\} (\S+)$/.exec(line);
          const isMeant = Object.entries(labels).every(([name, value]) =>
            match?.[1]?.includes(`${name}="${value}"`),
          );
          if (match !== null && isMeant) return Number(match[2]);
        }
        return undefined;
      },
      SEEN_BUDGET_MS,
    );
  }

  it('is ready once the runtime and the API server have told what there is', async () => {
    assert.deepEqual(await probe('/healthz'), { status: 200, text: 'ok\n' });
    await eventually('the agent is ready', async () =>
      (await probe('/readyz')).status === 200 ? true : undefined,
    );
  });

  it('learns a pod of a Deployment into a proposal that the Deployment owns', async () => {
    await runWebPod('aaaaa', `/usr/bin/id; /usr/bin/ls /home; exec ${PAUSE}`);
    const proposal = await eventually(
      () => `there is a proposal; the agent's warnings: ${warnings()}`,
      async () => {
        const found = await api.request({ path: `${PROPOSALS}/deploy-web` }).catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        });
        const text = JSON.stringify(found ?? {});
        return ['/bin/sh', '/usr/bin/id', '/usr/bin/ls', PAUSE].every((path) => text.includes(`"${path}"`))
          ? (found as { readonly metadata: { readonly ownerReferences: readonly OwnerReference[] } })
          : undefined;
      },
      SEEN_BUDGET_MS,
    );
    // Whether it blocks the owner's deletion is for admission to say, where that is installed.
    assert.deepEqual(proposal.metadata.ownerReferences, [ownedBy('apps/v1', 'Deployment', deployment)]);
  });

  it('binds a pod by its label, reports in monitor, denies in protect without a restart of the pod', async () => {
    const allowed = ['/bin/sh', '/usr/bin/ls', PAUSE];
    const spec = { mode: 'monitor', rulesByContainer: { main: { executables: { allowed } } } };
    const policy = { apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1', kind: 'WorkloadPolicy', spec };
    await make(POLICIES, { ...policy, metadata: { name: 'web' } });
    await agent.waitFor({ msg: 'policy loaded', policy: 'shop/web' });
    const pod = await runWebPod('bbbbb', `exec ${PAUSE}`, { [POLICY_LABEL]: 'web' });
    await mustRun(cri, pod, 'main', ['/usr/bin/ls', '/']);
    await mustRun(cri, pod, 'main', ['/usr/bin/id']);
    const seen = await reportedViolation(PORTS.grpc, { executablePath: '/usr/bin/id', action: 'monitor' });
    const expected = {
      ...{ namespace: NAMESPACE, policyName: 'web', podName: pod.spec.name, containerName: 'main' },
      ...{ nodeName: NODE_NAME, origin: 'exec', occurrences: 1 },
    };
    for (const [name, value] of Object.entries(expected)) assert.equal(Reflect.get(seen, name), value, name);
    assert.equal(await seenByCollector({ action: 'monitor', policy_name: 'web', node_name: NODE_NAME }), 1);

    const from = agent.log.length;
    await api.request({
      method: 'PATCH',
      path: `${POLICIES}/web`,
      patchType: 'application/merge-patch+json',
      body: { spec: { mode: 'protect' } },
    });
    await agent.waitFor({ msg: 'policy loaded', policy: 'shop/web', mode: 'protect' }, undefined, from);
    await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    await mustRun(cri, pod, 'main', ['/usr/bin/ls', '/']);
    await reportedViolation(PORTS.grpc, { executablePath: '/usr/bin/id', action: 'protect' });
    await seenByCollector({ action: 'protect', policy_name: 'web' });
    await withObserver(PORTS.grpc, async (client) => {
      assert.deepEqual((await client.listPoliciesStatus()).get('shop/web')?.mode, 'protect');
    });
    await eventually('the denial is an Event on the pod', async () => {
      const events = JSON.stringify(await api.request({ path: '/api/v1/namespaces/shop/events' }));
      return events.includes('ExecutableDenied') && events.includes(pod.uid) ? true : undefined;
    });
  });

  it('refuses a pod whose policy there is not, says so on the pod, and takes it when there is', async () => {
    const refused = runWebPod('ccccc', `exec ${PAUSE}`, { [POLICY_LABEL]: 'later' });
    await assert.rejects(refused, /has policy later associated, but the policy does not exist/);
    await eventually('the refusal is an Event on the pod', async () => {
      const events = JSON.stringify(await api.request({ path: '/api/v1/namespaces/shop/events' }));
      return events.includes('ContainerRefused') ? true : undefined;
    });
    const rules = { main: { executables: { allowed: ['/bin/sh', PAUSE] } } };
    await make(POLICIES, {
      ...{ apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1', kind: 'WorkloadPolicy' },
      ...{ metadata: { name: 'later' }, spec: { mode: 'protect', rulesByContainer: rules } },
    });
    await agent.waitFor({ msg: 'policy loaded', policy: 'shop/later' });
    const pod = await runWebPod('ddddd', `exec ${PAUSE}`, { [POLICY_LABEL]: 'later' });
    await mustBeDenied(cri, pod, 'main', ['/usr/bin/ls']);
  });

  it('enforces on after a kill while the API server is away, and is ready when that is back', async () => {
    const pod =
      pods.find(({ spec }) => spec.labels?.[POLICY_LABEL] === 'web') ?? assert.fail('there is no pod');
    await agent.signal('SIGKILL');
    ports.part();
    agent = await start();
    await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    await mustRun(cri, pod, 'main', ['/usr/bin/ls', '/']);
    // What crashed comes back under the list that its siblings have; what nobody here knows does not start.
    await restartContainer(cri, pod, 'main');
    await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    await assert.rejects(
      runPod(cri, {
        ...{ name: 'web-unknown', namespace: NAMESPACE, labels: { [POLICY_LABEL]: 'unknown' } },
        containers: [{ name: 'main', command: [PAUSE] }],
      }),
      /the policy does not exist/,
    );
    const { status, text } = await probe('/readyz');
    assert.equal(status, 503);
    assert.match(text, /the API server has not told its policies/);
    ports.join();
    await eventually(
      'the agent is ready again',
      async () => ((await probe('/readyz')).status === 200 ? true : undefined),
      SEEN_BUDGET_MS,
    );
    await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
  });

  it('hands the node over and takes it back while a forbidden command is tried: no gap, nothing lost or told twice', async () => {
    const rules = { main: { executables: { allowed: ['/bin/sh', PAUSE, STORM] } } };
    await make(POLICIES, {
      ...{ apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1', kind: 'WorkloadPolicy' },
      ...{ metadata: { name: 'storm' }, spec: { mode: 'protect', rulesByContainer: rules } },
    });
    await agent.waitFor({ msg: 'policy loaded', policy: 'shop/storm' });
    const pod = await runWebPod('eeeee', `exec ${PAUSE}`, { [POLICY_LABEL]: 'storm' });
    const total = { ran: 0, denied: 0, other: 0 };
    const over = new AbortController();
    const storm = (async () => {
      while (!over.signal.aborted) {
        const output = await mustRun(cri, pod, 'main', [
          STORM,
          '--seconds',
          String(STORM_SECONDS),
          FORBIDDEN,
        ]);
        const counts = stormCounts(output, FORBIDDEN);
        for (const name of ['ran', 'denied', 'other'] as const) total[name] += counts[name];
      }
    })();
    storm.catch(() => undefined);
    await eventually('the first agent tells of the storm', async () =>
      (await reportedOccurrences(PORTS.grpc, FORBIDDEN)) > 0 ? true : undefined,
    );

    const successor = await start(OTHER_AGENT_POD, OTHER_PORTS);
    try {
      const { status, text } = await probe('/readyz');
      assert.deepEqual([status, (await probe('/healthz')).status], [503, 200]);
      assert.match(text, new RegExp(OTHER_AGENT_POD));
      await eventually('the successor is ready', async () =>
        (await probe('/readyz', OTHER_PORTS)).status === 200 ? true : undefined,
      );
      over.abort();
      await storm;
      const { denied, ...passed } = total;
      assert.deepEqual(passed, { ran: 0, other: 0 });
      assert.ok(denied > 100, `only ${denied} attempts`);
      let told = 0;
      await eventually(
        () => `all ${denied} denials are told, not ${told}; the first agent's warnings: ${warnings()}`,
        async () => {
          told = await reportedOccurrences(OTHER_PORTS.grpc, FORBIDDEN);
          return told >= denied ? true : undefined;
        },
        SEEN_BUDGET_MS,
      );
      assert.equal(told, denied);
    } finally {
      over.abort();
      await successor.signal('SIGTERM');
    }
    assert.equal(successor.exitCode, 0);
    await eventually(
      'the first agent has the node again',
      async () => ((await probe('/readyz')).status === 200 ? true : undefined),
      SEEN_BUDGET_MS,
    );
    await mustBeDenied(cri, pod, 'main', [FORBIDDEN]);
  });

  it('is not ready within five seconds of being released, and ends within ten', async () => {
    const released = await runAgentCommand(['release']);
    assert.equal(released.exitCode, 0, released.stderr);
    const budgetMs = 5_000;
    const { text } = await eventually(
      'the agent is not ready',
      async () => {
        const answer = await probe('/readyz');
        return answer.status === 503 ? answer : undefined;
      },
      budgetMs,
    );
    assert.match(text, /not attached|agent resume brings it back/);
    const startedAt = performance.now();
    await agent.signal('SIGTERM');
    assert.ok(performance.now() - startedAt < STOP_BUDGET_MS);
    assert.equal(agent.exitCode, 0);
  });
});

/** As an object says who controls it. */
function ownedBy(apiVersion: string, kind: string, { metadata }: Made) {
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
}

const POD_SPEC = {
  automountServiceAccountToken: false,
  containers: [{ name: 'main', image: 'test.local/toolbox:1' }],
};

function workloadSpec(labels: Readonly<Record<string, string>>): object {
  return {
    replicas: 0,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: POD_SPEC },
  };
}
