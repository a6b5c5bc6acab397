import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from './api-client.ts';
import { isAlreadyExists, isConflict, isNotFound } from './api-error.ts';
import { isKubeObject, type KubeObject } from './kube-object.ts';
import {
  claim,
  isHeldByOther,
  leaseRecordOf,
  leaseSpecOf,
  microTime,
  observe,
  type ObservedLease,
} from './lease-record.ts';
import { collectionPath, LEASES, objectPath } from './resource-path.ts';

/** Each attempt waits up to this much longer by chance, so that candidates do not move in step. */
const JITTER = 0.2;

export interface LeaseTimings {
  /** How long others must have seen no change before they may take the lease. Whole seconds. */
  readonly leaseMs: number;
  /** How long the leader acts on its last renewal. Less than `leaseMs`: the difference is what clocks may drift. */
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
}

/** client-go's. */
export const LEASE_TIMINGS: LeaseTimings = { leaseMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

export interface LeaseElectorOptions {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  /** Who we are: different in every process, for example the pod's name and a random part. */
  readonly identity: string;
  readonly timings?: LeaseTimings;
  /**
   * Called when we lead. The signal ends with the leadership. What acts on the lease asks `isLeader` right before each
   * act: a process that was stopped for a while goes on before any timer or signal of it has run.
   */
  readonly onStarted: (leadership: AbortSignal) => void;
  /** Called when we no longer lead. */
  readonly onStopped: (reason: string) => void;
  /** Told each request for the lease that failed. Must not throw. */
  readonly onTrouble?: (error: unknown) => void;
  /** Milliseconds of a clock that no one sets. */
  readonly monotonicMs?: () => number;
}

/** Takes part in the election of one leader by a Lease, until it is stopped. */
export interface LeaseElector {
  start(): void;
  /** Ends the leadership, gives the lease back so that another can take it at once, and ends. */
  stop(): Promise<void>;
  /** Whether we may act as the leader at this moment. */
  isLeader(): boolean;
}

/** See {@link LeaseElector}. */
export function leaseElector(options: LeaseElectorOptions): LeaseElector {
  const { client, namespace, name, identity, onTrouble, timings = LEASE_TIMINGS } = options;
  const monotonicMs = options.monotonicMs ?? (() => performance.now());
  const path = objectPath({ resource: LEASES, namespace, name });
  const stopping = new AbortController();
  let observed: ObservedLease | undefined;
  let lease: KubeObject | undefined;
  let leadership: AbortController | undefined;
  /** When the request was sent by which the lease was last renewed. */
  let renewedAtMs = Number.NEGATIVE_INFINITY;
  let watchdog: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;

  const isFresh = (): boolean => monotonicMs() - renewedAtMs < timings.renewDeadlineMs;
  const isLeader = (): boolean => {
    if (leadership === undefined) return false;
    if (isFresh()) return true;
    stepDown('the lease was not renewed in time');
    return false;
  };

  function stepDown(reason: string): void {
    clearTimeout(watchdog);
    const ended = leadership;
    leadership = undefined;
    if (ended === undefined) return;
    ended.abort(new Error(`no longer the leader: ${reason}`));
    contain(() => options.onStopped(reason));
  }

  function lead(sentAtMs: number): void {
    renewedAtMs = sentAtMs;
    // The answer may have been so slow that the lease is worth nothing any more.
    if (!isFresh()) return;
    clearTimeout(watchdog);
    watchdog = setTimeout(isLeader, timings.renewDeadlineMs - (monotonicMs() - sentAtMs) + 1);
    if (leadership !== undefined) return;
    leadership = new AbortController();
    const { signal } = leadership;
    contain(() => options.onStarted(signal));
  }

  function contain(call: () => void): void {
    try {
      call();
    } catch (error) {
      onTrouble?.(error);
    }
  }

  async function read(signal: AbortSignal): Promise<void> {
    const answer = await client.request({ path, signal }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    lease = isKubeObject(answer) ? answer : undefined;
    observed = lease === undefined ? undefined : observe(observed, leaseRecordOf(lease), monotonicMs());
  }

  async function write(spec: Record<string, unknown>, signal: AbortSignal): Promise<void> {
    const answer = await client.request(
      lease === undefined
        ? { method: 'POST', path: collectionPath(LEASES, namespace), body: { ...newLease(), spec }, signal }
        : { method: 'PUT', path, body: { ...lease, spec }, signal },
    );
    lease = isKubeObject(answer) ? answer : undefined;
    observed = lease === undefined ? undefined : observe(observed, leaseRecordOf(lease), monotonicMs());
  }

  const newLease = (): Record<string, unknown> => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace },
  });

  async function attempt(signal: AbortSignal): Promise<void> {
    // A leader knows its lease and only renews it; a write that lost the race reads again.
    if (leadership === undefined || lease === undefined) await read(signal);
    if (observed !== undefined && isHeldByOther(observed, identity, monotonicMs())) {
      stepDown(`${observed.record.holder} holds the lease`);
      return;
    }
    const sentAtMs = monotonicMs();
    const claimant = { identity, leaseSeconds: Math.ceil(timings.leaseMs / 1_000), now: new Date() };
    try {
      await write(leaseSpecOf(claim(observed?.record, claimant)), signal);
      lead(sentAtMs);
    } catch (error) {
      if (!isConflict(error) && !isAlreadyExists(error)) throw error;
      await read(signal);
      if (observed !== undefined && isHeldByOther(observed, identity, monotonicMs())) {
        stepDown(`${observed.record.holder} holds the lease`);
      }
    }
  }

  async function run(): Promise<void> {
    const isStopped = (): boolean => stopping.signal.aborted;
    while (!isStopped()) {
      try {
        await attempt(AbortSignal.any([stopping.signal, AbortSignal.timeout(timings.renewDeadlineMs)]));
      } catch (error) {
        // Who holds it now must be read before anything is written.
        lease = undefined;
        if (!isStopped()) onTrouble?.(error);
      }
      isLeader();
      const waitMs = timings.retryMs * (1 + JITTER * Math.random());
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  async function release(): Promise<void> {
    const signal = AbortSignal.timeout(timings.retryMs);
    await read(signal);
    if (observed?.record.holder !== identity) return;
    const time = microTime(new Date());
    const free = { ...observed.record, holder: '', leaseSeconds: 1, renewTime: time, acquireTime: time };
    await write(leaseSpecOf(free), signal);
  }

  return {
    start() {
      running ??= run();
    },
    async stop() {
      const wasLeader = leadership !== undefined;
      stopping.abort();
      stepDown('stopping');
      await running;
      if (wasLeader) await release().catch((error: unknown) => onTrouble?.(error));
    },
    isLeader,
  };
}
