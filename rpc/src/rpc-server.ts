import {
  Server,
  ServerCredentials,
  status,
  type handleServerStreamingCall,
  type handleUnaryCall,
} from '@grpc/grpc-js';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { createCallGuard } from './call-guard.ts';
import { DEFAULT_CLIENT_NAMES, type ClientNames, type ClientRole } from './client-identity.ts';
import type { HandshakeLimits } from './connection-limits.ts';
import { createHealthService, healthMethods } from './health-service.ts';
import {
  OBSERVER_SERVICE,
  observerMethods,
  type Acknowledgement,
  type AcknowledgeResult,
  type BindingListPage,
  type BindingListRequest,
  type PodListPage,
  type PodListRequest,
  type PolicyListPage,
  type PolicyListRequest,
} from './observer-service.ts';
import type { RpcLog } from './refusal-log.ts';
import { ReaderGoneError, sendReport } from './report-stream.ts';
import type { NodeReport, WatchCursors } from './reported.ts';
import { createTlsListener, type ListenerCounters } from './tls-listener.ts';

/** What serves the calls; who calls and how is not its business. */
export interface ObserverHandlers {
  /**
   * Sends reports until the signal ends, which then is no failure.
   * @param send resolves when the connection has taken the report, and rejects when the reader is gone
   */
  watch(
    cursors: WatchCursors,
    send: (report: NodeReport) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void>;
  acknowledge(acknowledgement: Acknowledgement): AcknowledgeResult;
  /** @throws InvalidRequestError */
  listPoliciesStatus(request: PolicyListRequest): PolicyListPage;
  /** @throws InvalidRequestError */
  listPods(request: PodListRequest): PodListPage;
  /** Rejects with an InvalidRequestError. */
  listBindings(request: BindingListRequest): Promise<BindingListPage>;
}

/** A request that no reader of ours sends; the message names the field. */
export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError';
}

export interface RpcServerOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly certificates: Pick<CertificateStore, 'current' | 'onChange'>;
  readonly clients?: ClientNames;
  readonly handlers: ObserverHandlers;
  readonly log: RpcLog;
  /** For tests. */
  readonly limits?: Partial<RpcLimits>;
}

export interface RpcLimits {
  readonly handshakes: HandshakeLimits;
  readonly handshakeMs: number;
  readonly requestMs: number;
  readonly writeMs: number;
  /** How long a watch lasts before its reader is to ask anew, and a tenth more or less by chance. */
  readonly watchMs: number;
}

export interface RpcServer {
  /** @returns the port. Rejects when it cannot be bound. */
  start(): Promise<number>;
  /** Ends the watches, lets calls under way finish for a moment, and closes every connection. */
  stop(): Promise<void>;
  setServing(serving: boolean): void;
  readonly counters: Readonly<ListenerCounters>;
}

const MINUTE_MS = 60_000;
const WATCH_MS = 25 * MINUTE_MS;
const STOP_GRACE_MS = 2_000;

/** Of more, the oldest is ended: the leading controller has one, and one that has just lost the lead another. */
const MAX_WATCHES = 4;

/** Requests hold cursors and names. */
const MAX_REQUEST_BYTES = 64 * 1024;
/** What gRPC clients accept unless told otherwise; our messages are far smaller. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

const CHANNEL_OPTIONS = {
  'grpc.max_concurrent_streams': 16,
  'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
  'grpc.max_send_message_length': MAX_RESPONSE_BYTES,
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  // After this, a client comes with the certificate that it has by then.
  'grpc.max_connection_age_ms': 35 * MINUTE_MS,
  'grpc.max_connection_age_grace_ms': 10_000,
  'grpc.enable_channelz': 0,
};

/** Each component's own methods. */
const ALLOWED: ReadonlyMap<string, readonly ClientRole[]> = new Map<string, readonly ClientRole[]>([
  [observerMethods.watch.path, ['controller']],
  [observerMethods.acknowledge.path, ['controller']],
  [observerMethods.listPoliciesStatus.path, ['controller', 'debugger']],
  [observerMethods.listPods.path, ['debugger']],
  [observerMethods.listBindings.path, ['debugger']],
  [healthMethods.check.path, ['controller', 'debugger']],
  [healthMethods.watch.path, ['controller', 'debugger']],
]);

/**
 * Serves proto/agent.proto over mutual TLS 1.3. We accept and check connections ourselves and hand them to gRPC only
 * then: its own server bounds no handshake, and forgets the TLS version when a certificate is replaced.
 */
export function createRpcServer(options: RpcServerOptions): RpcServer {
  const { handlers, log, limits = {}, clients = DEFAULT_CLIENT_NAMES } = options;
  const { requestMs, writeMs, watchMs = WATCH_MS } = limits;
  const guard = createCallGuard({
    clients,
    log,
    allowed: ALLOWED,
    requestMs,
  });
  const server = new Server({ ...CHANNEL_OPTIONS, interceptors: [guard] });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = createTlsListener({
    host: options.host,
    port: options.port,
    certificates: options.certificates,
    clients,
    onConnection: (socket) => injector.injectConnection(socket),
    log,
    limits: limits.handshakes,
    handshakeMs: limits.handshakeMs,
  });
  const health = createHealthService(OBSERVER_SERVICE);
  const watches = new Set<AbortController>();

  const watch: handleServerStreamingCall<WatchCursors, NodeReport> = (call) => {
    const ended = new AbortController();
    const { signal } = ended;
    const timer = setTimeout(() => ended.abort(), watchMs * (0.9 + 0.2 * Math.random()));
    call.once('cancelled', () => ended.abort());
    for (const oldest of watches) {
      if (watches.size < MAX_WATCHES) break;
      oldest.abort();
      watches.delete(oldest);
    }
    watches.add(ended);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      watches.delete(ended);
    });
    const onStalled = (): void => {
      log.warn({ peer: call.getPeer() }, 'connection closed: its client does not read');
      listener.close(call.getPeer());
    };
    const send = async (report: NodeReport): Promise<void> =>
      await sendReport(call, report, { onStalled, writeMs });
    handlers
      .watch(call.request, send, signal)
      .then(
        () => call.end(),
        (error: unknown) => {
          if (error instanceof ReaderGoneError || signal.aborted) call.end();
          else call.emit('error', failure(error));
        },
      )
      .finally(() => ended.abort());
  };

  /** A handler that fails must tell its client, and never ends the agent. */
  function unary<Request, Response>(
    handler: (request: Request) => Response | Promise<Response>,
  ): handleUnaryCall<Request, Response> {
    const answer = async (request: Request): Promise<Response> => await handler(request);
    return (call, reply) => {
      answer(call.request).then(
        (response) => reply(null, response),
        (error: unknown) => reply(failure(error)),
      );
    };
  }

  function failure(error: unknown): Error & { code: status; details: string } {
    const known = error instanceof InvalidRequestError;
    if (!known) log.error({ error: String(error) }, 'gRPC call failed');
    const details = known ? error.message : 'the agent failed to answer: see its log';
    return Object.assign(new Error(details), {
      code: known ? status.INVALID_ARGUMENT : status.INTERNAL,
      details,
    });
  }

  server.addService(observerMethods, {
    watch,
    acknowledge: unary((request: Acknowledgement) => handlers.acknowledge(request)),
    listPoliciesStatus: unary((request: PolicyListRequest) => handlers.listPoliciesStatus(request)),
    listPods: unary((request: PodListRequest) => handlers.listPods(request)),
    listBindings: unary((request: BindingListRequest) => handlers.listBindings(request)),
  });
  server.addService(healthMethods, { ...health.handlers });

  return {
    counters: listener.counters,
    start: () => listener.start(),
    async stop() {
      health.setServing(false);
      for (const watched of watches) watched.abort();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, STOP_GRACE_MS);
        server.tryShutdown(() => {
          clearTimeout(timer);
          resolve();
        });
      });
      server.forceShutdown();
      await listener.stop();
    },
    setServing: (serving) => health.setServing(serving),
  };
}
