import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ABI_VERSION } from '@runtime-enforcer/agent/kernel/gen/abi';
import { loadNative, type NativeMap } from '@runtime-enforcer/agent/kernel/native';
import { DEFAULT_PIN_ROOT, pinDirectory } from '@runtime-enforcer/agent/kernel/pins';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { type ApiClient, apiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { isKubeObject } from '@runtime-enforcer/kube/kube-object';
import { type PooledConfig, pooledConfig } from '@runtime-enforcer/kube/pooled-config';
import { startAgent, type AgentProcess } from '../runtime/agent-process.ts';
import { openCri } from '../runtime/cri.ts';
import { mustBeDenied } from '../runtime/expectations.ts';
import {
  containerCgroup,
  containerOf,
  removePod,
  restartContainer,
  runPod,
  type Pod,
} from '../runtime/pod.ts';
import { forwardHostPorts, type HostPorts } from './host-network.ts';
import {
  ADDON,
  ADMIN_KUBECONFIG,
  AGENT_CERTIFICATES,
  AGENT_KUBECONFIG,
  AGENT_NAMESPACE,
  AGENT_POD,
  DEBUGGER_CERTIFICATES,
  DEBUGGER_KUBECONFIG,
  DEBUGGER_PROGRAM,
  NODE_NAME,
  SCENE_FILE,
  type Scene,
} from './scene.ts';

const NAMESPACE = 'ledger';
const POLICY = 'books';
const PAUSE = '/opt/test/pause';
const AGENT_ADDRESS = '127.0.0.1';
const DEBUGGER_BUDGET_MS = 60_000;
const ASIDE = '/sys/fs/cgroup/aside';
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const AGENT_PODS = `/api/v1/namespaces/${AGENT_NAMESPACE}/pods`;
const POLICIES = `/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/${NAMESPACE}/workloadpolicies`;
const STARTED_AT = '2026-01-31T12:00:00Z';

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The lines of differences. */
  readonly differences: readonly string[];
}

describe('the debugger beside a real agent', () => {
  const cri = openCri();
  let ports: HostPorts;
  let pool: PooledConfig;
  let api: ApiClient;
  let agent: AgentProcess;
  let bound: Pod;
  let free: Pod;

  before(async () => {
    const scene = JSON.parse(await readFile(SCENE_FILE, 'utf8')) as Scene;
    ports = await forwardHostPorts([scene.apiPort]);
    pool = pooledConfig((config) => config.loadFromFile(ADMIN_KUBECONFIG));
    api = apiClient(pool);
    await post('/api/v1/namespaces', { metadata: { name: NAMESPACE } });
    for (const namespace of [NAMESPACE, AGENT_NAMESPACE])
      await post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } });
    await post(POLICIES, {
      ...{ apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1', kind: 'WorkloadPolicy' },
      metadata: { name: POLICY },
      spec: { mode: 'protect', rulesByContainer: { main: { executables: { allowed: [PAUSE] } } } },
    });
    agent = await startAgent(['--kubeconfig', AGENT_KUBECONFIG, '--grpc-mtls-cert-dir', AGENT_CERTIFICATES], {
      NODE_NAME,
      POD_NAME: AGENT_POD,
      POD_NAMESPACE: AGENT_NAMESPACE,
    });
    await agent.waitFor({ msg: 'policy loaded', policy: `${NAMESPACE}/${POLICY}` });
    await post(AGENT_PODS, {
      metadata: { name: AGENT_POD, labels: { 'app.kubernetes.io/component': 'agent' } },
      spec: podSpec('agent'),
    });
    const podIPs = [{ ip: AGENT_ADDRESS }];
    await patch(`${AGENT_PODS}/${AGENT_POD}/status`, {
      status: { phase: 'Running', podIP: AGENT_ADDRESS, podIPs },
    });
    bound = await runReportedPod('books-0', { [POLICY_LABEL]: POLICY });
    free = await runReportedPod('ledger-5d59d67564-aaaaa', { 'pod-template-hash': '5d59d67564' });
  });
  after(async () => {
    for (const pod of [bound, free]) {
      await removePod(cri, pod);
      await remove(`${PODS}/${pod.spec.name}`).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
    await remove(`${POLICIES}/${POLICY}`);
    await remove(`${AGENT_PODS}/${AGENT_POD}`);
    await agent.signal('SIGTERM');
    await pool.close();
    ports.close();
    cri.close();
  });

  async function post(path: string, body: object): Promise<{ readonly uid: string }> {
    const made = await api.request({ method: 'POST', path, body });
    assert.ok(isKubeObject(made));
    return { uid: made.metadata.uid ?? '' };
  }

  async function patch(path: string, body: object): Promise<void> {
    await api.request({ method: 'PATCH', path, patchType: 'application/merge-patch+json', body });
  }

  async function remove(path: string): Promise<void> {
    await api.request({ method: 'DELETE', path, query: { gracePeriodSeconds: 0 } });
  }

  /** Runs a pod of the API server, and says there that it runs: kubelet's part. */
  async function runReportedPod(name: string, labels: Readonly<Record<string, string>>): Promise<Pod> {
    const { uid } = await post(PODS, { metadata: { name, labels }, spec: podSpec('main') });
    const pod = await runPod(cri, {
      ...{ name, namespace: NAMESPACE, uid, labels },
      containers: [{ name: 'main', command: [PAUSE] }],
    });
    await reportContainer(name, containerOf(pod, 'main').id);
    return pod;
  }

  async function reportContainer(podName: string, id: string): Promise<void> {
    const status = {
      ...{ name: 'main', image: 'toolbox', imageID: '', ready: true, restartCount: 0, started: true },
      containerID: `containerd://${id}`,
      state: { running: { startedAt: STARTED_AT } },
    };
    await patch(`${PODS}/${podName}/status`, { status: { phase: 'Running', containerStatuses: [status] } });
  }

  const named = ({ spec, uid }: Pod): string => `pod ${NAMESPACE}/${spec.name} (${uid})`;
  const contained = (pod: Pod): string => `${named(pod)}: container main (${containerOf(pod, 'main').id})`;

  async function aligned(): Promise<void> {
    const { code, stdout, stderr } = await runDebugger();
    const lines = stdout.split('\n').slice(1);
    assert.deepEqual(
      [stderr, ...lines],
      [
        '',
        '=== Nodes in the cluster: 1, agent caches: 1.',
        `=== Node "${NODE_NAME}": caches are aligned`,
        '',
      ],
    );
    assert.equal(code, 0);
  }

  it('says that the caches are aligned where a bound pod and one without a policy run', async () => {
    await mustBeDenied(cri, bound, 'main', ['/usr/bin/id']);
    await aligned();
  });

  it('tells what the kernel holds otherwise than the agent has written it', async () => {
    const cgroups = openMap('cgroups');
    try {
      const [key, slot] = [cgroupKey(await cgroupId(bound)), Buffer.alloc(4)];
      slot.set(cgroups.lookup(key) ?? assert.fail('the kernel does not hold the bound container'));
      cgroups.delete(key);
      cgroups.update(cgroupKey(4_000_000_000n), slot);
      const { code, differences, stdout } = await runDebugger();
      cgroups.delete(cgroupKey(4_000_000_000n));
      cgroups.update(key, slot);
      assert.deepEqual(differences, [
        `- ${contained(bound)}: the kernel does not hold it, so what it starts is neither checked nor learned`,
        `- the kernel holds place ${slot.readUInt32LE()} for cgroup 4000000000, which belongs to no container that the agent knows`,
      ]);
      assert.equal(code, 3);
      assert.match(stdout, /^=== Node "guest-1": found differences$/m);
      assert.match(stdout, /^==== Agent cache dump \(2 pods\)$/m);
    } finally {
      cgroups.close();
    }
    await aligned();
  });

  it("tells when a container's cgroup is another than the agent has bound, until the container is a new one", async () => {
    const before = await cgroupId(bound);
    await replaceCgroup(containerCgroup(bound, 'main'));
    const now = await cgroupId(bound);
    assert.notEqual(now, before);
    const { code, differences } = await runDebugger();
    assert.deepEqual(differences, [
      `- ${contained(bound)}: "cgroup id" mismatch: agent="${before}", node="${now}"`,
    ]);
    assert.equal(code, 3);
    await restartContainer(cri, bound, 'main');
    await reportContainer(bound.spec.name, containerOf(bound, 'main').id);
    await aligned();
  });

  it('tells what the API server says of labels, policies and workloads that the agent does not', async () => {
    await patch(`${PODS}/${bound.spec.name}`, { metadata: { labels: { [POLICY_LABEL]: 'other' } } });
    await patch(`${PODS}/${free.spec.name}`, { metadata: { labels: { 'pod-template-hash': null } } });
    const { code, differences } = await runDebugger();
    await patch(`${PODS}/${bound.spec.name}`, { metadata: { labels: { [POLICY_LABEL]: POLICY } } });
    await patch(`${PODS}/${free.spec.name}`, { metadata: { labels: { 'pod-template-hash': '5d59d67564' } } });
    assert.deepEqual(differences.toSorted(), [
      `- ${named(bound)}: "label ${POLICY_LABEL}" mismatch: cluster="other", agent="${POLICY}"`,
      `- ${contained(bound)}: "policy" mismatch: cluster="${NAMESPACE}/other", agent="${NAMESPACE}/${POLICY}"`,
      `- ${named(free)}: "workload" mismatch: cluster="Pod/${free.spec.name}", agent="Deployment/ledger"`,
    ]);
    assert.equal(code, 3);
  });

  it('tells as data which pods only one side knows', async () => {
    const { uid } = await post(PODS, { metadata: { name: 'ghost' }, spec: podSpec('main') });
    await reportContainer('ghost', 'f00d');
    await remove(`${PODS}/${free.spec.name}`);
    const { code, stdout } = await runDebugger('-o', 'json');
    await remove(`${PODS}/ghost`);
    assert.equal(code, 3);
    const { aligned: isAligned, reports } = JSON.parse(stdout) as {
      readonly aligned: boolean;
      readonly reports: readonly { readonly differences: readonly object[]; readonly cache: Cache }[];
    };
    const [report] = reports;
    assert.deepEqual(
      report?.differences.map((difference) => Reflect.get(difference, 'text') as string),
      [
        `pod ${NAMESPACE}/ghost (${uid}) is missing from the agent cache`,
        `unexpected ${named(free)} found in the agent cache`,
      ],
    );
    assert.equal(isAligned, false);
    const held = report.cache.bindings.map((binding) => binding.cgroupId);
    assert.ok(held.includes(String(await cgroupId(bound))), `the kernel holds ${held.join(', ')}`);
  });

  it('finds no cache where the agent is gone, and says why', async () => {
    await agent.signal('SIGKILL');
    const { code, stdout } = await runDebugger();
    assert.match(stdout, /^=== Nodes in the cluster: 1, agent caches: 0\.$/m);
    assert.match(stdout, /^=== Node "guest-1": no agent cache available: .*ECONNREFUSED/m);
    assert.equal(code, 3);
  });
});

interface Cache {
  readonly bindings: readonly { readonly cgroupId: string }[];
}

async function runDebugger(...args: readonly string[]): Promise<Run> {
  const { code, stdout, stderr } = await new Promise<Omit<Run, 'differences'>>((resolve) => {
    const command = [DEBUGGER_PROGRAM, '--once', '--kubeconfig', DEBUGGER_KUBECONFIG, ...args];
    const env = {
      ...process.env,
      ...{ POD_NAMESPACE: AGENT_NAMESPACE, DEBUGGER_CERT_DIR: DEBUGGER_CERTIFICATES },
    };
    const child = execFile(
      process.execPath,
      command,
      { env, timeout: DEBUGGER_BUDGET_MS },
      (_error, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
  const differences = stdout.split('\n').filter((line) => line.startsWith('- '));
  return { code, stdout, stderr, differences };
}

function openMap(name: string): NativeMap {
  return loadNative(ADDON).openPinnedMap(pinDirectory(DEFAULT_PIN_ROOT, ABI_VERSION).map(name));
}

async function cgroupId(pod: Pod): Promise<bigint> {
  return (await stat(containerCgroup(pod, 'main'), { bigint: true })).ino;
}

function cgroupKey(id: bigint): Buffer {
  const key = Buffer.alloc(8);
  key.writeBigUInt64LE(id);
  return key;
}

/** Puts another cgroup in the place of one, with the processes of the first: only who is root on the node can. */
async function replaceCgroup(directory: string): Promise<void> {
  const move = async (from: string, to: string): Promise<void> => {
    const pids = (await readFile(join(from, 'cgroup.procs'), 'utf8')).trim().split('\n');
    for (const pid of pids) await writeFile(join(to, 'cgroup.procs'), pid);
  };
  await mkdir(ASIDE);
  await move(directory, ASIDE);
  await rmdir(directory);
  await mkdir(directory);
  await move(ASIDE, directory);
  await rmdir(ASIDE);
}

function podSpec(container: string): object {
  return {
    nodeName: NODE_NAME,
    automountServiceAccountToken: false,
    containers: [{ name: container, image: 'test.local/toolbox:1' }],
  };
}
