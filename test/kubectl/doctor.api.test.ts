import type { ServerResponse } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCommand } from '@runtime-enforcer/agent/commands/command';
import { createAuthority } from '@runtime-enforcer/certs/authority';
import { generatedCertificates } from '@runtime-enforcer/controller/certificates/generated-certificates';
import {
  authoritySecret,
  partCertificates,
  SECRETS,
} from '@runtime-enforcer/controller/certificates/part-certificate';
import { SILENT_LOG } from '@runtime-enforcer/controller/testing/silent';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { pagedList } from '@runtime-enforcer/kube/paged-list';
import { collectionPath, objectPath, PODS, type Resource } from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { joinNode, type PretendedKubelets, pretendKubelets } from '../cluster/pretended-kubelets.ts';
import { eventually } from '../runtime/eventually.ts';
import { type DoctorVisits, doctorVisits, findingLine } from './doctor-findings.ts';
import { type PluginRunner, pluginRunner } from './plugin-runner.ts';
import { HEALTHY_METRICS, type PretendedMetrics, pretendMetrics } from './pretended-metrics.ts';

const NAMESPACE = 'runtime-enforcer';
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };
const DAY_MS = 86_400_000;
let plane: ControlPlane;
let shell: PluginRunner;
let kubelets: PretendedKubelets;
let metrics: PretendedMetrics;
let doctor: DoctorVisits;
let values = '';
beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await plane.startControllers();
  shell = await pluginRunner(plane, 'default');
  doctor = doctorVisits(shell);
  kubelets = await pretendKubelets(client, ['node-1']);
  metrics = await pretendMetrics();
  kubelets.podAddress = metrics.address;
  const secrets = ['agent', 'controller', 'webhook', 'debugger', 'collector'];
  values = [
    ...['certificates.mode=secret', `agent.metricsPort=${metrics.port}`, 'telemetry.collectorStrategy=none'],
    ...secrets.map((part) => `certificates.secret.${part}=${part}-tls`),
  ]
    .map((value) => ` --set ${value}`)
    .join('');
  values += await authorityFlag(300);
});
afterAll(async () => {
  await kubelets.stop();
  metrics.stop();
  await shell.stop();
  await plane.stop();
});

/** The flag by which helm is given an authority for the webhooks that ends in so many days. */
async function authorityFlag(daysLeft: number): Promise<string> {
  const now = new Date(Date.now() - 400 * DAY_MS);
  const { certificate } = await createAuthority({
    ...{ commonName: 'ca', now, validForMs: (400 + daysLeft) * DAY_MS },
  });
  const file = join(shell.directory, `authority-${daysLeft}.crt`);
  await writeFile(file, certificate);
  return ` --set-file certificates.secret.webhookAuthority=${file}`;
}

/** A command of the agent's own is one that the agent understands. */
function expectAgentCommand(repair = '', name: string): void {
  const [, words = ''] = repair.split(' -- agent ');
  expect(readCommand(words.split(' '), {}).name, repair).toBe(name);
}

async function pods(component: string): Promise<readonly KubeObject[]> {
  const { objects } = await pagedList(plane.admin.client, {
    path: collectionPath(PODS, NAMESPACE),
    query: { labelSelector: `app.kubernetes.io/component=${component}` },
  });
  return objects;
}

async function agentOf(node: string): Promise<KubeObject> {
  const found = (await pods('agent')).find(({ spec }) => (spec as { nodeName?: string }).nodeName === node);
  return found ?? expect.fail(`no agent runs on ${node}`);
}

/** Has a pod say so of itself. */
async function setReady(pod: KubeObject, status: 'True' | 'False'): Promise<void> {
  const { namespace = NAMESPACE, name } = pod.metadata;
  await plane.admin.client.request({
    method: 'PATCH',
    path: objectPath({ resource: PODS, namespace, name, subresource: 'status' }),
    patchType: 'application/strategic-merge-patch+json',
    body: { status: { conditions: [{ type: 'Ready', status }] } },
  });
}

describe('a cluster without the product', () => {
  it('is told everything that is missing, and one command brings it', async () => {
    const missing = await doctor.diagnose();
    expect(missing.map(findingLine)).toEqual([
      'error workloadpolicies: the custom resource is not installed',
      'error workloadpolicyproposals: the custom resource is not installed',
      'error controller: no controller runs',
      'error agent: no agent runs on any node',
      'warning MutatingWebhookConfiguration: the product has none',
      'warning ValidatingWebhookConfiguration: the product has none',
      'warning ValidatingAdmissionPolicy: nothing keeps the policy label of running pods from being changed',
    ]);
    expect(new Set(missing.map(({ repair }) => repair)).size).toBe(1);
    await doctor.repaired(missing[0], values);
    await doctor.green();
    const { code, stdout } = await shell.plugin('doctor');
    expect(stdout).toBe('Nothing is wrong.\n');
    expect(code).toBe(0);
  });
});

describe('a part that somebody deleted', () => {
  it.each([
    [
      'crd workloadpolicyproposals.runtimeenforcer.kubewarden.io',
      'workloadpolicyproposals: the custom resource is not installed',
    ],
    [
      `deployment -n ${NAMESPACE} -l app.kubernetes.io/component=controller`,
      'controller: no controller runs',
    ],
    [`daemonset -n ${NAMESPACE} -l app.kubernetes.io/component=agent`, 'agent: no agent runs on any node'],
    [
      'mutatingwebhookconfiguration -l app.kubernetes.io/name=runtime-enforcer',
      'MutatingWebhookConfiguration: the product has none',
    ],
    [
      'validatingwebhookconfiguration -l app.kubernetes.io/name=runtime-enforcer',
      'ValidatingWebhookConfiguration: the product has none',
    ],
    [
      'validatingadmissionpolicy -l app.kubernetes.io/name=runtime-enforcer',
      'ValidatingAdmissionPolicy: nothing keeps the policy label',
    ],
  ])('is found, and its repair brings it back: %s', async (object, text) => {
    expect((await shell.command(`kubectl delete ${object}`)).code).toBe(0);
    await doctor.repaired(await doctor.found(text));
    await doctor.green();
  });
});

describe('pods of the product', () => {
  it.each([
    ['agent', 'it is not ready (Running)'],
    ['controller', 'no controller is ready'],
  ])('are found where they are not ready: %s', async (component, text) => {
    const [pod] = await pods(component);
    if (pod === undefined) throw new Error(`no pod of the ${component} runs`);
    await setReady(pod, 'False');
    const { severity, repair } = await doctor.found(text);
    expect(severity).toBe('error');
    expect(repair).toBe(`kubectl logs -n ${NAMESPACE} ${pod.metadata.name} --all-containers --tail=50`);
    await setReady(pod, 'True');
    await doctor.green();
  });

  it('are missed on a node that they do not tolerate, until they do', async () => {
    await joinNode(plane.admin.client, 'node-2');
    await doctor.green();
    const taint = 'kubectl taint node node-2 dedicated=other:NoExecute';
    const install = 'helm upgrade runtime-enforcer charts/runtime-enforcer -n runtime-enforcer';
    const fewer = `${install} --reset-then-reuse-values --set-json 'agent.tolerations=[]'`;
    expect((await shell.command(fewer)).code).toBe(0);
    expect((await shell.command(taint)).code).toBe(0);
    const finding = await doctor.found('node node-2: it has no agent: nothing is enforced there');
    expect(finding.severity).toBe('error');
    await doctor.repaired(finding);
    await doctor.green();
    await plane.admin.client.request({
      method: 'DELETE',
      path: objectPath({ resource: NODES, name: 'node-2' }),
    });
  });
});

describe('what agents tell of themselves', () => {
  afterEach(async () => {
    metrics.text = HEALTHY_METRICS;
    metrics.answer = undefined;
    await doctor.green();
  });

  it.each([
    ['nri_connected 1', 'nri_connected 0', 'error', 'it is not connected to the container runtime', 'check'],
    [
      'degraded 0',
      'degraded 1',
      'warning',
      'an exec can pass unchecked on this kernel (lsm on 6.12)',
      'check',
    ],
    ['misses_total 0', 'misses_total 7', 'warning', 'the kernel skipped the program 7 times', 'check'],
    ['"none"', '"monitor"', 'warning', 'an operator has set all its policies to monitor', 'override'],
  ])('is found: %s becomes %s', async (from, to, severity, text, command) => {
    metrics.text = HEALTHY_METRICS.replace(from, to);
    const finding = await doctor.found(`agent on node node-1: ${text}`);
    expect(finding.severity).toBe(severity);
    expect(finding.repair).toMatch(/^kubectl exec -n runtime-enforcer runtime-enforcer-agent-/);
    expectAgentCommand(finding.repair, command);
  });

  it('is found where the program was taken off the kernel; the agent that comes in its place attaches it again', async () => {
    const before = await agentOf('node-1');
    metrics.text = HEALTHY_METRICS.replace('attached 1', 'attached 0');
    const finding = await doctor.found('agent on node node-1: somebody took the program off the kernel');
    expect(finding.severity).toBe('error');
    await doctor.repaired(finding);
    await eventually('another agent runs', async () =>
      (await agentOf('node-1')).metadata.uid === before.metadata.uid ? undefined : true,
    );
  });

  it('is found where somebody released the node, and told apart from an agent that is only not ready', async () => {
    const agent = await agentOf('node-1');
    await setReady(agent, 'False');
    metrics.text = HEALTHY_METRICS.replace('"owner"} 1', '"owner"} 0').replace(
      '"released"} 0',
      '"released"} 1',
    );
    const finding = await doctor.found('somebody has taken all enforcement off the node (agent release)');
    expect(finding.severity).toBe('error');
    expectAgentCommand(finding.repair, 'resume');
    metrics.text = HEALTHY_METRICS;
    expect((await doctor.found('it is not ready (Running)')).repair).toContain('kubectl logs');
    await setReady(agent, 'True');
  });

  it.each<[string, (response: ServerResponse) => void, string]>([
    ['never answers', () => undefined, 'no whole answer within 5000 ms'],
    ['never ends', (response) => void response.write('x 1\n'), 'no whole answer within 5000 ms'],
    [
      'tells too much',
      (response) => void response.end('x 1\n'.repeat(2_000_000)),
      'they are longer than 4194304 bytes',
    ],
    ['breaks off', (response) => void response.destroy(), 'its metrics cannot be read'],
    ['tells nonsense and escapes', (response) => void response.end('\u001b]52;c;eA==\u0007\0{{{'), ''],
  ])('is no reason to say nothing of the rest: one that %s', async (_, answer, text) => {
    metrics.answer = answer;
    const { code, stdout } = await shell.plugin('doctor');
    expect(stdout).toContain(text);
    expect(stdout).not.toMatch(/(?!\n)\p{Cc}/u);
    expect(code).toBe(0);
  });
});

describe('the runtime of a node', () => {
  it('is a note where it starts containers without asking while no agent is there', async () => {
    const runtime = async (containerRuntimeVersion: string): Promise<void> => {
      await plane.admin.client.request({
        method: 'PATCH',
        path: objectPath({ resource: NODES, name: 'node-1', subresource: 'status' }),
        patchType: 'application/merge-patch+json',
        body: { status: { nodeInfo: { containerRuntimeVersion } } },
      });
    };
    await runtime('containerd://1.7.24');
    const finding = await doctor.found(
      '1 nodes with containerd before 2.2: containers that start while no agent',
    );
    expect(finding.severity).toBe('note');
    expect((await shell.plugin('doctor')).code).toBe(0);
    await runtime('containerd://2.2.1');
    await doctor.green();
  });
});

describe('the authority of the webhooks', () => {
  it('is found where it was taken away, and its repair brings it back', async () => {
    const name = 'runtime-enforcer-mutating-webhook-configuration';
    const patch = JSON.stringify([{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }]);
    const command = `kubectl patch mutatingwebhookconfiguration ${name} --type=json -p '${patch}'`;
    expect((await shell.command(command)).code).toBe(0);
    const finding = await doctor.found('has no CA: the API server cannot call it');
    expect(finding.severity).toBe('error');
    await doctor.repaired(finding);
    await doctor.green();
  });

  it.each([
    [3, 'warning', 'the certificate expires in 2 days'],
    [-1, 'error', 'the certificate has expired'],
  ])('is found %d days before its end', async (days, severity, text) => {
    const install = 'helm upgrade runtime-enforcer charts/runtime-enforcer -n runtime-enforcer';
    expect(
      (await shell.command(`${install} --reset-then-reuse-values${await authorityFlag(days)}`)).code,
    ).toBe(0);
    const finding = await doctor.found(`CA of MutatingWebhookConfiguration`);
    expect(finding).toMatchObject({ severity, message: text });
    await doctor.repaired(finding, ` --reset-then-reuse-values${await authorityFlag(300)}`);
    await doctor.green();
  });
});

describe('a certificate that the controller makes', () => {
  const place = { release: 'runtime-enforcer', namespace: NAMESPACE, clusterDomain: 'cluster.local' };
  const labels = { 'app.kubernetes.io/name': 'runtime-enforcer' };
  const names = [authoritySecret(place), ...partCertificates(place).map(({ secret }) => secret)];
  let directory = '';
  afterAll(async () => {
    await rm(directory, { recursive: true, force: true });
  });

  it('is found when it has expired; the controller that is started again makes another', async () => {
    const { client } = plane.admin;
    directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-doctor-'));
    for (const name of names)
      await client.request({
        method: 'POST',
        path: collectionPath(SECRETS, NAMESPACE),
        body: { metadata: { name, labels } },
      });
    const { certificate } = await createAuthority({
      ...{ commonName: 'old', now: new Date(Date.now() - 2 * DAY_MS), validForMs: DAY_MS },
    });
    await client.request({
      method: 'PATCH',
      path: objectPath({ resource: SECRETS, namespace: NAMESPACE, name: names[1] ?? '' }),
      patchType: 'application/merge-patch+json',
      body: { data: { 'tls.crt': Buffer.from(certificate).toString('base64') } },
    });
    const finding = await doctor.found(`Secret ${NAMESPACE}/${names[1] ?? ''}: the certificate has expired`);
    expect(finding.severity).toBe('error');
    const [before] = await pods('controller');
    await doctor.repaired(finding);
    await eventually('another controller runs', async () =>
      (await pods('controller')).some(({ metadata }) => metadata.uid !== before?.metadata.uid)
        ? true
        : undefined,
    );
    // What a controller does when it starts.
    const certificates = generatedCertificates({
      ...{ client, place, authorityLifetimeMs: 300 * DAY_MS, lifetimeMs: 90 * DAY_MS, log: SILENT_LOG },
      directories: { webhook: directory },
    });
    await certificates.start();
    await certificates.stop();
    await doctor.green();
  });
});
