import fc from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiError, ConnectionError } from './api-error.ts';
import type { ApiClient } from './api-client.ts';
import type { KubeObject } from './kube-object.ts';
import { type LeaseElector, leaseElector, type LeaseElectorOptions } from './lease-elector.ts';
import { claim, isHeldByOther, leaseRecordOf, microTime, observe } from './lease-record.ts';

const FAST = { leaseMs: 1_000, renewDeadlineMs: 300, retryMs: 40 };

/** Keeps one object as an API server does, with its optimistic lock. */
function leaseServer() {
  let stored: KubeObject | undefined;
  let version = 0;
  const state = { failing: false, delayMs: 0 };
  const client: ApiClient = {
    async request({ method = 'GET', path, body, signal }) {
      if (state.delayMs > 0) await sleep(state.delayMs, undefined, signal === undefined ? {} : { signal });
      signal?.throwIfAborted();
      if (state.failing) throw new ConnectionError(path, new Error('down'));
      if (method === 'GET') {
        if (stored === undefined) throw new ApiError(path, 404, { reason: 'NotFound' });
        return structuredClone(stored);
      }
      const object = structuredClone(body) as KubeObject;
      if (method === 'POST' ? stored !== undefined : object.metadata.resourceVersion !== String(version)) {
        throw new ApiError(path, 409, { reason: method === 'POST' ? 'AlreadyExists' : 'Conflict' });
      }
      stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } };
      return structuredClone(stored);
    },
    stream: () => Promise.reject(new Error('not served')),
  };
  return {
    client,
    state,
    record: () => stored && leaseRecordOf(stored),
    force: (spec: unknown) => {
      stored = { metadata: { name: 'x', resourceVersion: String(++version) }, spec };
    },
  };
}

let electors: LeaseElector[] = [];
afterEach(async () => {
  await Promise.all(electors.map(async (elector) => await elector.stop()));
  electors = [];
});

function candidate(client: ApiClient, identity: string, options: Partial<LeaseElectorOptions> = {}) {
  const log: string[] = [];
  const elector = leaseElector({
    client,
    namespace: 'ns',
    name: 'x',
    identity,
    timings: FAST,
    onStarted: () => log.push('started'),
    onStopped: (reason) => log.push(reason),
    ...options,
  });
  electors.push(elector);
  elector.start();
  return { elector, log };
}

describe('leaseElector', () => {
  it('one of several leads, and when it stops another does at once', async () => {
    const server = leaseServer();
    const all = ['a', 'b', 'c'].map((identity) => candidate(server.client, identity));
    const leaders = () => all.filter(({ elector }) => elector.isLeader());
    await vi.waitFor(() => expect(leaders()).toHaveLength(1));
    await sleep(500);
    const [first] = leaders();
    expect(leaders()).toHaveLength(1);
    expect(first?.log).toEqual(['started']);
    const from = performance.now();
    await first?.elector.stop();
    await vi.waitFor(() => expect(leaders()).toHaveLength(1));
    expect(performance.now() - from).toBeLessThan(FAST.leaseMs / 2);
    expect(first?.log).toEqual(['started', 'stopping']);
    expect(server.record()?.transitions).toBeGreaterThan(0);
  });

  it('steps down when it cannot renew, before another may lead', async () => {
    const server = leaseServer();
    let signal: AbortSignal | undefined;
    const { elector, log } = candidate(server.client, 'a', {
      onStarted: (leadership) => (signal = leadership),
    });
    await vi.waitFor(() => expect(elector.isLeader()).toBe(true));
    server.state.failing = true;
    const from = performance.now();
    await vi.waitFor(() => expect(signal?.aborted).toBe(true), { timeout: 2_000, interval: 5 });
    expect(performance.now() - from).toBeLessThan(FAST.leaseMs - 100);
    expect(log).toEqual(['the lease was not renewed in time']);
    server.state.failing = false;
    await vi.waitFor(() => expect(elector.isLeader()).toBe(true));
  });

  it('a request that never ends does not keep it leading', async () => {
    const server = leaseServer();
    const { elector } = candidate(server.client, 'a');
    await vi.waitFor(() => expect(elector.isLeader()).toBe(true));
    server.state.delayMs = 60_000;
    await vi.waitFor(() => expect(elector.isLeader()).toBe(false), { timeout: 2_000 });
  });

  it('a process that was stopped knows at its first question that it leads no longer', async () => {
    const server = leaseServer();
    let skippedMs = 0;
    const monotonicMs = () => performance.now() + skippedMs;
    const { elector, log } = candidate(server.client, 'a', { monotonicMs });
    await vi.waitFor(() => expect(elector.isLeader()).toBe(true));
    // No timer and no promise has run since.
    skippedMs = 60_000;
    expect(elector.isLeader()).toBe(false);
    expect(log).toEqual(['started', 'the lease was not renewed in time']);
  });

  it('takes a dead holder’s lease only after watching it for its whole length, whatever its clock said', async () => {
    const server = leaseServer();
    const renewTime = '1999-01-01T00:00:00.000000Z';
    server.force({ holderIdentity: 'dead', leaseDurationSeconds: 1, renewTime, leaseTransitions: 3 });
    const from = performance.now();
    const { elector } = candidate(server.client, 'a');
    await vi.waitFor(() => expect(elector.isLeader()).toBe(true), { timeout: 3_000, interval: 5 });
    expect(performance.now() - from).toBeGreaterThan(950);
    expect(server.record()).toMatchObject({ holder: 'a', transitions: 4 });
  });

  it('gives way when somebody else has written itself into the lease', async () => {
    const server = leaseServer();
    const { elector, log } = candidate(server.client, 'a');
    await vi.waitFor(() => expect(elector.isLeader()).toBe(true));
    server.force({ holderIdentity: 'b', leaseDurationSeconds: 100, renewTime: microTime(new Date()) });
    await vi.waitFor(() => expect(log).toEqual(['started', 'b holds the lease']));
    expect(elector.isLeader()).toBe(false);
  });

  it.each([[{}], [null], [{ holderIdentity: 5, leaseDurationSeconds: 'x', leaseTransitions: -1 }]])(
    'takes a lease that says %j',
    async (spec) => {
      const server = leaseServer();
      server.force(spec);
      const { elector } = candidate(server.client, 'a');
      await vi.waitFor(() => expect(elector.isLeader()).toBe(true));
    },
  );
});

describe('lease records', () => {
  it('nobody else leads while a leader acts on its renewal, however late others look', () => {
    fc.assert(
      fc.property(fc.nat(100_000), fc.nat(30_000), fc.nat(30_000), (sentAtMs, seenAfterMs, laterMs) => {
        const record = claim(undefined, { identity: 'a', leaseSeconds: 15, now: new Date(0) });
        const observed = observe(undefined, record, sentAtMs + seenAfterMs);
        const nowMs = sentAtMs + seenAfterMs + laterMs;
        const acts = nowMs - sentAtMs < 10_000;
        if (acts) expect(isHeldByOther(observed, 'b', nowMs)).toBe(true);
      }),
    );
  });

  it('have six digits of the second', () => {
    expect(microTime(new Date(0))).toBe('1970-01-01T00:00:00.000000Z');
  });
});
