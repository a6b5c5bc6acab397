import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { issueCertificate, type CertifiedKey } from '@runtime-enforcer/certs/authority';
import { DEBUGGER } from '../../debugger/bundled-program.ts';
import { bundleProgram } from '../../images/program-bundle.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { type Grants, requestToken } from '../cluster/service-account.ts';
import type { RunRing } from '../rings/report.ts';
import { agentPayload } from '../runtime/agent-payload.ts';
import { collectorCertificates, startCollector, type Collector } from '../telemetry/collector.ts';
import type { PayloadItem } from '../vm/guest-initramfs.ts';
import { runGuestSuite } from '../vm/guest-suite.ts';
import { runDirectory } from '../vm/run-directory.ts';
import { agentGrants, debuggerGrants } from './agent-rules.ts';
import {
  ADMIN_KUBECONFIG,
  AGENT_CERTIFICATES,
  AGENT_KUBECONFIG,
  AGENT_NAMESPACE,
  AGENT_POD,
  COLLECTOR_CERTIFICATES,
  CONTROLLER_CERTIFICATES,
  DEBUGGER_CERTIFICATES,
  DEBUGGER_DIRECTORY,
  DEBUGGER_KUBECONFIG,
  SCENE_FILE,
  type Scene,
} from './scene.ts';

const GUEST_BUDGET_MS = 900_000;
const TEST_BUDGET_MS = 300_000;
const VALID_MS = 3_600_000;

/**
 * The node ring: the agent and the debugger as they are shipped in a guest with containerd, beside a real API server
 * and a real collector on the host.
 */
export const run: RunRing = async (report) => {
  const payload = await agentPayload();
  const directory = await runDirectory();
  const debuggerBundle = join(directory, 'debugger');
  let plane: ControlPlane | undefined;
  let collector: Collector | undefined;
  try {
    await bundleProgram(DEBUGGER, debuggerBundle);
    plane = await startControlPlane();
    await installCustomResources(plane.admin.client);
    const { agent, collector: shown, authority } = await collectorCertificates(directory);
    collector = await startCollector(directory, shown);
    report.heading('an agent of a cluster, on Linux 6.12');
    await runGuestSuite(
      {
        ...{ kernel: '6.12', containerd: true, network: 'user' },
        payload: [
          ...payload,
          ...(await scenePayload(plane, collector)),
          { path: COLLECTOR_CERTIFICATES, source: agent },
          { path: DEBUGGER_DIRECTORY, source: debuggerBundle },
          ...(await observerCertificates(authority)),
        ],
        // The agent's suite ends with a node that is released.
        files: ['debugger', 'agent'].map((suite) => join(import.meta.dirname, `${suite}.guest.test.ts`)),
        timeoutMs: GUEST_BUDGET_MS,
        testTimeoutMs: TEST_BUDGET_MS,
      },
      report,
    );
    return report.result();
  } finally {
    await collector?.stop();
    await plane?.stop();
    await rm(directory, { recursive: true, force: true });
  }
};

async function scenePayload(plane: ControlPlane, collector: Collector): Promise<readonly PayloadItem[]> {
  const { client } = plane.admin;
  const tokenOf = async (name: string, grants: Grants): Promise<string> => {
    await plane.serviceAccount(AGENT_NAMESPACE, name, grants);
    return await requestToken(client, AGENT_NAMESPACE, name);
  };
  const { authority, admin } = plane.credentials;
  const scene: Scene = {
    apiPort: Number(new URL(plane.url).port),
    collectorPort: collector.port,
    collectorMetricsPort: collector.metricsPort,
  };
  const kubeconfig = (user: object): Uint8Array =>
    Buffer.from(
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'guest' },
        clusters: [
          {
            name: 'guest',
            cluster: { server: plane.url, 'certificate-authority-data': base64(authority.certificate) },
          },
        ],
        users: [{ name: 'guest', user }],
        contexts: [{ name: 'guest', context: { cluster: 'guest', user: 'guest' } }],
      }),
    );
  const adminUser = {
    'client-certificate-data': base64(admin.certificate),
    'client-key-data': base64(admin.key),
  };
  return [
    { path: SCENE_FILE, source: Buffer.from(JSON.stringify(scene)) },
    { path: AGENT_KUBECONFIG, source: kubeconfig({ token: await tokenOf('agent', await agentGrants()) }) },
    {
      path: DEBUGGER_KUBECONFIG,
      source: kubeconfig({ token: await tokenOf('debugger', await debuggerGrants()) }),
    },
    { path: ADMIN_KUBECONFIG, source: kubeconfig(adminUser) },
  ];
}

async function observerCertificates(authority: CertifiedKey): Promise<readonly PayloadItem[]> {
  const pair = async (directory: string, name: string, usage: 'client' | 'server') => {
    const { certificate, key } = await issueCertificate(authority, {
      ...{ commonName: name, dnsNames: [name], usages: [usage], now: new Date(), validForMs: VALID_MS },
    });
    return [
      { path: `${directory}/tls.crt`, source: Buffer.from(certificate) },
      { path: `${directory}/tls.key`, source: Buffer.from(key) },
      { path: `${directory}/ca.crt`, source: Buffer.from(authority.certificate) },
    ];
  };
  return [
    ...(await pair(AGENT_CERTIFICATES, `${AGENT_POD}.${AGENT_NAMESPACE}`, 'server')),
    ...(await pair(CONTROLLER_CERTIFICATES, 'controller', 'client')),
    ...(await pair(DEBUGGER_CERTIFICATES, 'debugger', 'client')),
  ];
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
