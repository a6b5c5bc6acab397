import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import type { ClientNames } from '@runtime-enforcer/rpc/client-identity';
import type { RpcLog } from '@runtime-enforcer/rpc/refusal-log';
import type { NodeState, ReportedBinding, ReportedViolation } from '@runtime-enforcer/rpc/reported';
import { createRpcServer, type RpcLimits, type RpcServer } from '@runtime-enforcer/rpc/rpc-server';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { PolicyState } from '../policies/policy-state.ts';
import { bindingPage } from './binding-pages.ts';
import { acknowledge, type ReadableLog } from './log-pages.ts';
import { policyPage } from './policy-pages.ts';
import { createPolicyRevisions } from './policy-revisions.ts';
import { podPage } from './pod-pages.ts';
import { streamReports, type WatchTimings } from './watch-stream.ts';

/** How often node and policies are looked at while somebody watches. */
const LOOK_MS = 1_000;

/** What the kernel holds at the moment, whatever the agent has written. */
export interface KernelReadings {
  /** By rising cgroup id, then slot. */
  bindings(): Promise<readonly ReportedBinding[]>;
  /** The id that the directory of a container's cgroup has; 0 where there is none. */
  presentCgroupId(container: BoundContainer): bigint;
}

/** Where the server finds what it tells. Nothing of it is called unless somebody asks. */
export interface ObserverSources {
  readonly node: () => NodeState;
  /** As read back from the kernel, by `namespace/name`. */
  readonly policies: () => ReadonlyMap<string, PolicyState>;
  readonly containers: () => Iterable<BoundContainer>;
  /** Left out where nothing is in the kernel. */
  readonly kernel?: KernelReadings;
  readonly violations: ReadableLog<ReportedViolation>;
  readonly observations: ReadableLog<NodeObservation>;
}

export interface ObserverServerOptions {
  readonly sources: ObserverSources;
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly certificates: Pick<CertificateStore, 'current' | 'onChange'>;
  /** By default the DNS names `controller` and `debugger`. */
  readonly clients?: ClientNames;
  readonly log: RpcLog;
  /** For tests. */
  readonly limits?: Partial<RpcLimits & WatchTimings & { readonly lookMs: number }>;
}

/** See {@link RpcServer}. */
export interface ObserverServer extends RpcServer {
  /** Watchers are told of what changed without waiting for the next look. */
  changed(): void;
}

/**
 * Tells controllers and debuggers what this node enforces and what it has seen. No call changes anything but
 * `Acknowledge`, by which a controller says what it has stored.
 */
export function createObserverServer(options: ObserverServerOptions): ObserverServer {
  const { sources, limits = {}, clients } = options;
  const { lookMs = LOOK_MS } = limits;
  const revisions = createPolicyRevisions(sources.policies);
  const listeners = new Set<() => void>();
  let look: NodeJS.Timeout | undefined;

  const changed = (): void => {
    if (listeners.size === 0) return;
    try {
      revisions.refresh();
    } catch (error) {
      options.log.error({ error: String(error) }, 'the states of the policies could not be read');
    }
    for (const listener of listeners) listener();
  };
  const onChange = (listener: () => void): (() => void) => {
    listeners.add(listener);
    revisions.refresh();
    look ??= setInterval(changed, lookMs);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      clearInterval(look);
      look = undefined;
    };
  };

  const server = createRpcServer({
    host: options.host,
    port: options.port,
    certificates: options.certificates,
    ...(clients && { clients }),
    log: options.log,
    limits,
    handlers: {
      watch: (cursors, send, signal) =>
        streamReports({ ...sources, revisions, onChange }, cursors, send, signal, limits),
      acknowledge: ({ violations, observations }) => ({
        violationsAccepted: acknowledge(sources.violations, violations),
        observationsAccepted: acknowledge(sources.observations, observations),
      }),
      listPoliciesStatus: (request) => policyPage(sources.policies(), request),
      listPods: (request) => podPage(sources, request),
      listBindings: async (request) => bindingPage((await sources.kernel?.bindings()) ?? [], request),
    },
  });
  return { ...server, changed };
}
