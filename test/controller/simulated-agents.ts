import { randomUUID } from 'node:crypto';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import {
  createObserverServer,
  type ObserverServer,
  type ObserverSources,
} from '@runtime-enforcer/agent/server/observer-server';
import type { PolicyState } from '@runtime-enforcer/agent/policies/policy-state';
import { createCumulativeLog, type KeptLog } from '@runtime-enforcer/agent/violations/cumulative-log';
import { type CertifiedKey, issueCertificate } from '@runtime-enforcer/certs/authority';
import { type KeyPair, parseKeyPair } from '@runtime-enforcer/certs/key-pair';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { collectionPath, objectPath, PODS } from '@runtime-enforcer/kube/resource-path';
import type { NodeState, ReportedViolation } from '@runtime-enforcer/rpc/reported';
import { CONTROLLER_NAMESPACE } from './controller-process.ts';

const VALID_FOR_MS = 24 * 3_600_000;
const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** One node's agent: the real server over mutual TLS, telling what a test puts into it. */
export interface SimulatedAgent {
  readonly nodeName: string;
  readonly podName: string;
  readonly address: string;
  readonly policies: Map<string, PolicyState>;
  node: NodeState;
  readonly violations: KeptLog<ReportedViolation>;
  readonly observations: KeptLog<NodeObservation>;
  /** Tells watchers of changed policies and state at once. */
  changed(): void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Agents have one port, so each of this machine's has an address of its own. */
export function agentAddress(index: number): string {
  return `127.${1 + Math.floor(index / 62_500)}.${Math.floor(index / 250) % 250}.${1 + (index % 250)}`;
}

export interface SimulatedAgentOptions {
  readonly authority: CertifiedKey;
  readonly index: number;
  readonly port: number;
  readonly nodeName?: string;
  /** Of containers, for whoever lists them; none when left out. */
  readonly sources?: Pick<ObserverSources, 'containers' | 'kernel'>;
}

/** Nothing listens until it is started. */
export async function simulatedAgent(options: SimulatedAgentOptions): Promise<SimulatedAgent> {
  const { authority, index, port, nodeName = `node-${index}` } = options;
  const podName = `agent-${index}`;
  const pair = await agentPair(authority, podName);
  const address = agentAddress(index);
  const policies = new Map<string, PolicyState>();
  const violations = createCumulativeLog<ReportedViolation>({ incarnation: randomUUID() });
  const observations = createCumulativeLog<NodeObservation>({ incarnation: randomUUID() });
  let server: ObserverServer | undefined;
  const agent: SimulatedAgent = {
    nodeName,
    podName,
    address,
    policies,
    violations,
    observations,
    node: {
      nodeName,
      agentVersion: '0.1.0',
      startedAt: new Date().toISOString(),
      attachment: 'lsm',
      kernel: '6.12',
      attached: true,
      degraded: '',
      override: 'none',
      runtimeConnected: true,
      policiesLoaded: true,
    },
    changed: () => server?.changed(),
    async start() {
      server = createObserverServer({
        sources: {
          node: () => agent.node,
          policies: () => policies,
          ...(options.sources ?? { containers: () => [] }),
          violations,
          observations,
        },
        host: address,
        port,
        certificates: { current: () => pair, onChange: () => () => undefined },
        log: SILENT,
      });
      await server.start();
      server.setServing(true);
    },
    async stop() {
      await server?.stop();
      server = undefined;
    },
  };
  return agent;
}

/** The certificate of the pod's agent, if the authority is that of the product. */
export async function agentPair(authority: CertifiedKey, podName: string): Promise<KeyPair> {
  const now = new Date();
  const issued = await issueCertificate(authority, {
    commonName: podName,
    dnsNames: [`${podName}.${CONTROLLER_NAMESPACE}`],
    usages: ['server', 'client'],
    now,
    validForMs: VALID_FOR_MS,
  });
  const files = { 'tls.crt': issued.certificate, 'tls.key': issued.key, 'ca.crt': authority.certificate };
  return parseKeyPair(files, now);
}

/** Tells the API server of a pod on a node, as kubelet would. */
export async function createPodOnNode(
  client: ApiClient,
  pod: {
    readonly namespace: string;
    readonly name: string;
    readonly nodeName: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly address?: string;
  },
): Promise<void> {
  const { namespace, name, nodeName, labels, address } = pod;
  await client.request({
    method: 'POST',
    path: collectionPath(PODS, namespace),
    body: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels },
      spec: { nodeName, containers: [{ name: 'app', image: 'app' }] },
    },
  });
  await client.request({
    method: 'PATCH',
    path: objectPath({ resource: PODS, namespace, name, subresource: 'status' }),
    patchType: 'application/merge-patch+json',
    body: {
      status: {
        phase: 'Running',
        ...(address !== undefined && { podIP: address, podIPs: [{ ip: address }] }),
      },
    },
  });
}

/** The agent's own pod. */
export async function createAgentPod(
  client: ApiClient,
  agent: Pick<SimulatedAgent, 'podName' | 'nodeName' | 'address'>,
): Promise<void> {
  await createPodOnNode(client, {
    namespace: CONTROLLER_NAMESPACE,
    name: agent.podName,
    nodeName: agent.nodeName,
    address: agent.address,
    labels: { 'app.kubernetes.io/component': 'agent' },
  });
}

/** A pod of a policy. */
export async function createBoundPod(
  client: ApiClient,
  pod: {
    readonly namespace: string;
    readonly name: string;
    readonly nodeName: string;
    readonly policy: string;
  },
): Promise<void> {
  await createPodOnNode(client, { ...pod, labels: { [POLICY_LABEL]: pod.policy } });
}
