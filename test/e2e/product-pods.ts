import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { eventually } from '../runtime/eventually.ts';
import { AGENTS } from './installation.ts';
import type { Person } from './person.ts';
import type { WholeCluster } from './whole-cluster.ts';

const AGENT_PROGRAM = '/opt/runtime-enforcer/agent.mjs';
const AGENT_GRPC_PORT = 50_051;
const AGENT_METRICS_PORT = 8_080;
const COMES_BACK_MS = 180_000;

/** A pod of the product, as far as tests look at it. */
export interface ProductPod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** The agents' processes on the node, in order. */
export async function agentPids({ node }: WholeCluster): Promise<readonly string[]> {
  const { stdout } = await node.run('pgrep', '-f', AGENT_PROGRAM);
  return stdout.split('\n').filter((line) => line !== '');
}

/** The product's pods of a component that are not going away. */
export async function podsOf(operator: Person, component: string): Promise<readonly ProductPod[]> {
  const listed = await operator.kubectl(`get pods -l app.kubernetes.io/component=${component} -o json`);
  const { items } = JSON.parse(listed) as { readonly items: readonly ProductPod[] };
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

/** Waits until there is one agent, and it is ready. */
export async function agentsAreReady(operator: Person): Promise<void> {
  await operator.kubectl(`rollout status daemonset/${AGENTS} --timeout=180s`);
  await eventually(
    'the agent is ready',
    async () => {
      const pods = await podsOf(operator, 'agent');
      const ready = pods.filter(({ status }) =>
        status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
      );
      return pods.length === 1 && ready.length === 1 ? true : undefined;
    },
    COMES_BACK_MS,
  );
}

/** What the agent counts, as Prometheus reads it: over TLS, whoever signed the certificate. */
export async function agentMetrics(operator: Person): Promise<string> {
  const host = await agentAddress(operator);
  const options = { host, port: AGENT_METRICS_PORT, path: '/metrics', rejectUnauthorized: false };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(options, resolve).on('error', reject);
  });
  return await text(response);
}

/** The serial number of the certificate that the agent shows to who asks it. */
export async function agentCertificate(operator: Person): Promise<string> {
  const host = await agentAddress(operator);
  return await new Promise((resolve, reject) => {
    const socket = connect({ host, port: AGENT_GRPC_PORT, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

async function agentAddress(operator: Person): Promise<string> {
  const [pod] = await podsOf(operator, 'agent');
  if (pod?.status.podIP === undefined) throw new Error('no pod of the agent has an address');
  return pod.status.podIP;
}
