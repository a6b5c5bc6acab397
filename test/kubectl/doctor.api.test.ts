import { createServer, type Server } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '@runtime-enforcer/certs/authority';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { pagedList } from '@runtime-enforcer/kube/paged-list';
import { collectionPath, objectPath, PODS, type Resource } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { joinNode, type PretendedKubelets, pretendKubelets } from '../cluster/pretended-kubelets.ts';
import { freePorts } from '../cluster/port.ts';
import { eventually } from '../runtime/eventually.ts';
import { type PluginRunner, pluginRunner } from './plugin-runner.ts';

const NAMESPACE = 'runtime-enforcer';
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };
const DAY_MS = 86_400_000;
const HEALTHY = `runtime_enforcer_attached 1
runtime_enforcer_nri_connected 1
runtime_enforcer_degraded 0
runtime_enforcer_recursion_misses_total 0
runtime_enforcer_override_info{override="none"} 1
runtime_enforcer_attachment_info{kind="lsm",kernel="6.12"} 1
`;

interface Finding {
  readonly check: string;
  readonly severity: 'error' | 'warning' | 'note';
  readonly subject: string;
  readonly message: string;
  readonly repair?: string;
}

let plane: ControlPlane;
let shell: PluginRunner;
let kubelets: PretendedKubelets;
let metrics: Server;
let metricsText = HEALTHY;
let values = '';
beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await plane.startControllers();
  shell = await pluginRunner(plane, 'default');
  kubelets = await pretendKubelets(client, ['node-1']);
  // The API server reaches pods at every address but those of the loopback interface.
  const address = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (address === undefined) throw new Error('this machine has no address by which pods could be reached');
  kubelets.podAddress = address;
  const [port = 0] = await freePorts(1);
  metrics = createServer((_request, response) => response.end(metricsText));
  await new Promise<void>((resolve) => metrics.listen(port, address, resolve));
  const secrets = ['agent', 'controller', 'webhook', 'debugger', 'collector'];
  values = [
    ...['certificates.mode=secret', `agent.metricsPort=${port}`, 'telemetry.collectorStrategy=none'],
    ...secrets.map((part) => `certificates.secret.${part}=${part}-tls`),
  ]
    .map((value) => ` --set ${value}`)
    .join('');
  values += await authorityFlag(300);
});
afterAll(async () => {
  await kubelets.stop();
  metrics.close();
  metrics.closeAllConnections();
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

/** What doctor finds, and the exit code that it has for that. */
async function diagnose(): Promise<readonly Finding[]> {
  const { code, stdout } = await shell.plugin('doctor -o json');
  const findings = JSON.parse(stdout) as readonly Finding[];
  expect(code).toBe(findings.some(({ severity }) => severity !== 'note') ? 3 : 0);
  return findings;
}

const messagesOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ severity, subject, message }) => `${severity} ${subject}: ${message}`);

/** Waits until doctor finds nothing. */
async function green(): Promise<void> {
  await eventually(
    'doctor finds nothing',
    async () => {
      const found = await diagnose();
      return found.length === 0 ? true : undefined;
    },
    60_000,
  ).catch(async (error: unknown) => {
    throw new Error(`doctor still finds: ${messagesOf(await diagnose()).join('\n')}`, { cause: error });
  });
}

/** Runs a repair as it was told; `more` says what the release is made of where there is none yet. */
async function repaired(finding: Finding | undefined, more = ''): Promise<void> {
  const command = finding?.repair ?? 'false';
  const { code, stderr } = await shell.command(`${command}${more}`);
  expect(stderr.replaceAll(/^WARNING.*\n/gm, '')).toBe('');
  expect(code).toBe(0);
}

/** The one finding that is wanted, once it is there. */
async function found(text: string): Promise<Finding> {
  return await eventually(
    `doctor finds: ${text}`,
    async () => (await diagnose()).find(({ subject, message }) => `${subject}: ${message}`.includes(text)),
    30_000,
  );
}

async function pods(component: string): Promise<readonly KubeObject[]> {
  const { objects } = await pagedList(plane.admin.client, {
    path: collectionPath(PODS, NAMESPACE),
    query: { labelSelector: `app.kubernetes.io/component=${component}` },
  });
  return objects;
}

describe('a cluster without the product', () => {
  it('is told everything that is missing, and one command brings it', async () => {
    const missing = await diagnose();
    expect(messagesOf(missing)).toEqual([
      'error workloadpolicies: the custom resource is not installed',
      'error workloadpolicyproposals: the custom resource is not installed',
      'error controller: no controller runs',
      'error agent: no agent runs on any node',
      'warning MutatingWebhookConfiguration: the product has none',
      'warning ValidatingWebhookConfiguration: the product has none',
      'warning ValidatingAdmissionPolicy: nothing keeps the policy label of running pods from being changed',
    ]);
    expect(new Set(missing.map(({ repair }) => repair)).size).toBe(1);
    await repaired(missing[0], values);
    await green();
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
    await repaired(await found(text));
    await green();
  });
});

describe('pods of the product', () => {
  const setReady = async (pod: KubeObject, status: 'True' | 'False'): Promise<void> => {
    const { namespace = NAMESPACE, name } = pod.metadata;
    await plane.admin.client.request({
      method: 'PATCH',
      path: objectPath({ resource: PODS, namespace, name, subresource: 'status' }),
      patchType: 'application/strategic-merge-patch+json',
      body: { status: { conditions: [{ type: 'Ready', status }] } },
    });
  };

  it.each([
    ['agent', 'it is not ready (Running)'],
    ['controller', 'no controller is ready'],
  ])('are found where they are not ready: %s', async (component, text) => {
    const [pod] = await pods(component);
    if (pod === undefined) throw new Error(`no pod of the ${component} runs`);
    await setReady(pod, 'False');
    const { severity, repair } = await found(text);
    expect(severity).toBe('error');
    expect(repair).toBe(`kubectl logs -n ${NAMESPACE} ${pod.metadata.name} --all-containers --tail=50`);
    await setReady(pod, 'True');
    await green();
  });

  it('are missed on a node that they do not tolerate, until they do', async () => {
    await joinNode(plane.admin.client, 'node-2');
    await green();
    const taint = 'kubectl taint node node-2 dedicated=other:NoExecute';
    const install = 'helm upgrade runtime-enforcer charts/runtime-enforcer -n runtime-enforcer';
    const fewer = `${install} --reset-then-reuse-values --set-json 'agent.tolerations=[]'`;
    expect((await shell.command(fewer)).code).toBe(0);
    expect((await shell.command(taint)).code).toBe(0);
    const finding = await found('node node-2: it has no agent: nothing is enforced there');
    expect(finding.severity).toBe('error');
    await repaired(finding);
    await green();
    await plane.admin.client.request({
      method: 'DELETE',
      path: objectPath({ resource: NODES, name: 'node-2' }),
    });
  });
});

describe('what agents tell of themselves', () => {
  it.each([
    ['attached 1', 'attached 0', 'error', 'somebody took the program off the kernel'],
    ['nri_connected 1', 'nri_connected 0', 'error', 'it is not connected to the container runtime'],
    ['degraded 0', 'degraded 1', 'warning', 'an exec can pass unchecked on this kernel (lsm on 6.12)'],
    ['misses_total 0', 'misses_total 7', 'warning', 'the kernel skipped the program 7 times'],
    ['"none"', '"monitor"', 'warning', 'an operator has set all its policies to monitor'],
  ])('is found: %s becomes %s', async (from, to, severity, text) => {
    metricsText = HEALTHY.replace(from, to);
    const finding = await found(`agent on node node-1: ${text}`);
    expect(finding.severity).toBe(severity);
    expect(finding.repair).toMatch(/^kubectl (logs|exec) -n runtime-enforcer runtime-enforcer-agent-/);
    metricsText = HEALTHY;
    await green();
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
    const finding = await found('1 nodes with containerd before 2.2: containers that start while no agent');
    expect(finding.severity).toBe('note');
    expect((await shell.plugin('doctor')).code).toBe(0);
    await runtime('containerd://2.2.1');
    await green();
  });
});

describe('the authority of the webhooks', () => {
  it.each([
    [3, 'warning', 'the certificate expires in 2 days'],
    [-1, 'error', 'the certificate has expired'],
  ])('is found %d days before its end', async (days, severity, text) => {
    const install = 'helm upgrade runtime-enforcer charts/runtime-enforcer -n runtime-enforcer';
    expect(
      (await shell.command(`${install} --reset-then-reuse-values${await authorityFlag(days)}`)).code,
    ).toBe(0);
    const finding = await found(`CA of MutatingWebhookConfiguration`);
    expect(finding).toMatchObject({ severity, message: text });
    await repaired(finding, ` --reset-then-reuse-values${await authorityFlag(300)}`);
    await green();
  });
});
