import { isIPv6 } from 'node:net';
import { Client, type ClientReadableStream, type MethodDefinition } from '@grpc/grpc-js';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { AgentCallError, agentCallError } from './agent-call-error.ts';
import { AgentCredentials } from './agent-credentials.ts';
import { watchAgent, type WatchEvent, type WatchOptions } from './agent-watch.ts';
import { healthMethods, HEALTH_SERVING } from './health-service.ts';
import {
  observerMethods,
  OBSERVER_SERVICE,
  type Acknowledgement,
  type AcknowledgeResult,
  type PodListRequest,
} from './observer-service.ts';
import { type PolicyEntryPool, policyEntryPool } from './policy-entry-pool.ts';
import { readReport } from './report-codec.ts';
import type { ReportedBinding, ReportedPod, ReportedPolicy } from './reported.ts';

const CALL_MS = 10_000;
/** No node has as much: an agent that goes on is not one. */
const MAX_PAGES = 1_000;

export interface AgentClientOptions {
  /** IP address of the agent's pod. */
  readonly address: string;
  readonly port: number;
  readonly podName: string;
  readonly namespace: string;
  /** The DNS name that the agent's certificate must have; `<pod>.<namespace>` when left out. */
  readonly serverName?: string;
  readonly certificates: Pick<CertificateStore, 'current'>;
  /** Shared by the clients of many agents; its own when left out. */
  readonly policyPool?: PolicyEntryPool;
  /** Milliseconds that a call may take; 10,000 when left out. */
  readonly callMs?: number;
  readonly handshakeMs?: number;
}

/** Calls one agent. Every rejection is an {@link AgentCallError}. */
export interface AgentClient {
  /** The node's state and every change of it, across reconnects; see {@link watchAgent}. */
  watch(options: WatchOptions): AsyncGenerator<WatchEvent, void>;
  acknowledge(acknowledgement: Acknowledgement): Promise<AcknowledgeResult>;
  /** By `namespace/name`. */
  listPoliciesStatus(): Promise<ReadonlyMap<string, ReportedPolicy>>;
  listPods(
    filter?: Partial<Pick<PodListRequest, 'namespace' | 'podName'>>,
  ): AsyncGenerator<ReportedPod, void>;
  /** What the kernel's maps say now. An agent that is older than its caller does not know the call. */
  listBindings(): AsyncGenerator<ReportedBinding, void>;
  /** Whether the agent says that it serves. */
  isServing(): Promise<boolean>;
  /** Ends calls under way. */
  close(): void;
}

const CHANNEL_OPTIONS = {
  'grpc.max_receive_message_length': 4 * 1024 * 1024,
  'grpc.max_send_message_length': 64 * 1024,
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 10_000,
  // Agents are in the cluster: a proxy for the way out of it would not know them.
  'grpc.enable_http_proxy': 0,
  'grpc.enable_channelz': 0,
  'grpc.use_local_subchannel_pool': 1,
};

/**
 * A client for the agent of one pod, which proves itself by a certificate for the server name. Connects at the first
 * call.
 */
export function createAgentClient(options: AgentClientOptions): AgentClient {
  const { address, port, podName, namespace, callMs = CALL_MS } = options;
  const pod = `${podName}.${namespace}`;
  const { serverName = pod } = options;
  const agent = `${pod} at ${address}:${port}`;
  const target = isIPv6(address) ? `ipv6:[${address}]:${port}` : `ipv4:${address}:${port}`;
  const { certificates, handshakeMs, policyPool = policyEntryPool() } = options;
  const watchMethod = {
    ...observerMethods.watch,
    responseDeserialize: (bytes: Buffer) => readReport(bytes, policyPool),
  };
  let channel = open();
  let closed = false;

  function open(): Client {
    const credentials = new AgentCredentials({ certificates, serverName, handshakeMs });
    return new Client(target, credentials, CHANNEL_OPTIONS);
  }

  async function call<Request, Response>(
    method: MethodDefinition<Request, Response>,
    request: Request,
  ): Promise<Response> {
    return await new Promise((resolve, reject) => {
      channel.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        { deadline: Date.now() + callMs },
        (error, response) => {
          if (error === null && response !== undefined) resolve(response);
          else reject(agentCallError(agent, error ?? new Error('there is no response')));
        },
      );
    });
  }

  function stream<Request, Response>(
    method: MethodDefinition<Request, Response>,
    request: Request,
  ): ClientReadableStream<Response> {
    return channel.makeServerStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
    );
  }

  /** Pages until one names no other. */
  async function* pages<P extends { readonly nextPageToken: string }>(
    page: (pageToken: string) => Promise<P>,
  ): AsyncGenerator<P, void> {
    let pageToken = '';
    for (let count = 0; count < MAX_PAGES; count++) {
      const next = await page(pageToken);
      yield next;
      pageToken = next.nextPageToken;
      if (pageToken === '') return;
    }
    throw new AgentCallError(
      'incompatible',
      `agent ${agent}: its list does not end after ${MAX_PAGES} pages`,
    );
  }

  return {
    watch: (watchOptions) =>
      watchAgent(
        {
          agent,
          open: (cursors) => stream(watchMethod, cursors),
          renew() {
            channel.close();
            if (!closed) channel = open();
          },
        },
        watchOptions,
      ),
    acknowledge: (acknowledgement) => call(observerMethods.acknowledge, acknowledgement),
    async listPoliciesStatus() {
      const policies = new Map<string, ReportedPolicy>();
      for await (const page of pages((pageToken) => call(observerMethods.listPoliciesStatus, { pageToken })))
        for (const [key, policy] of page.policies) policies.set(key, policy);
      return policies;
    },
    async *listPods({ namespace: wanted = '', podName: wantedPod = '' } = {}) {
      const request = { namespace: wanted, podName: wantedPod };
      for await (const { pods } of pages((pageToken) =>
        call(observerMethods.listPods, { ...request, pageToken }),
      ))
        yield* pods;
    },
    async *listBindings() {
      for await (const { bindings } of pages((pageToken) =>
        call(observerMethods.listBindings, { pageToken }),
      ))
        yield* bindings;
    },
    async isServing() {
      return (await call(healthMethods.check, { service: OBSERVER_SERVICE })).status === HEALTH_SERVING;
    },
    close() {
      closed = true;
      channel.close();
    },
  };
}
