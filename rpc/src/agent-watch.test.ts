import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { status, type ClientReadableStream } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { watchAgent, type WatchOptions } from './agent-watch.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';
import type { NodeReport, WatchCursors } from './reported.ts';

type Attempt = (stream: PassThrough) => void;

/** A watch whose connections behave one after the other as told; the last goes on for ever. */
function watch(attempts: readonly Attempt[], options: Partial<WatchOptions> = {}) {
  const ended = new AbortController();
  const opened: WatchCursors[] = [];
  let renewals = 0;
  const events = watchAgent(
    {
      agent: 'agent-1',
      renew: () => renewals++,
      open(cursors) {
        const stream = new PassThrough({ objectMode: true });
        attempts[Math.min(opened.length, attempts.length - 1)]?.(stream);
        opened.push(cursors);
        const cancel = (): void => void stream.destroy();
        return Object.assign(stream, { cancel }) as unknown as ClientReadableStream<NodeReport>;
      },
    },
    { signal: ended.signal, delayMs: () => 1, ...options },
  );
  return { events, opened, renewals: () => renewals, end: () => ended.abort() };
}

const fails: Attempt = (stream) =>
  stream.destroy(Object.assign(new Error('14'), { code: status.UNAVAILABLE, details: 'no route' }));
const reports =
  (...sequences: readonly number[]): Attempt =>
  (stream) => {
    for (const sequence of sequences) {
      const cursor = { incarnation: 'one', sequence };
      stream.write({
        violations: { cursor, resync: false, entries: [], more: false, refused: 0, refusals: [] },
      } satisfies NodeReport);
    }
  };

describe('watchAgent', () => {
  it('says each time that there is no connection, and why, and comes back on a new one', async () => {
    const { events, renewals, end } = watch([fails, fails, reports(1)]);
    const lost = (failures: number) => ({
      kind: 'lost',
      error: { problem: 'unreachable', message: 'agent agent-1: no route' },
      failures,
    });
    expect((await events.next()).value).toMatchObject(lost(1));
    expect((await events.next()).value).toMatchObject(lost(2));
    expect((await events.next()).value).toMatchObject({ kind: 'report' });
    expect(renewals()).toBe(2);
    end();
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  it('goes on behind the last report that its reader was done with', async () => {
    const breaks: Attempt = (stream) => {
      reports(1, 2)(stream);
      setTimeout(() => fails(stream), 20);
    };
    const { events, opened } = watch([breaks, reports(3)]);
    await events.next();
    await events.next();
    expect((await events.next()).value).toMatchObject({ kind: 'lost', failures: 1 });
    await events.next();
    expect(opened.map(({ violations }) => violations.sequence)).toEqual([0, 2]);
    await events.return();
  });

  it('asks anew, without an alarm, when the agent ends the watch in order', async () => {
    const ends: Attempt = (stream) => {
      reports(1)(stream);
      stream.end();
    };
    const { events, opened, renewals } = watch([ends, reports(2)]);
    await events.next();
    expect((await events.next()).value).toMatchObject({ kind: 'report' });
    expect(opened).toHaveLength(2);
    expect(renewals()).toBe(0);
    await events.return();
  });

  it('gives up a connection on which nothing comes, but not because its reader is slow', async () => {
    const { events } = watch([reports(1)], { silenceMs: 50 });
    expect((await events.next()).value).toMatchObject({ kind: 'report' });
    await sleep(100);
    expect((await events.next()).value).toMatchObject({
      kind: 'lost',
      error: { problem: 'deadline', message: 'agent agent-1: it has sent nothing for 50 ms' },
    });
    await events.return();
  });

  it('ends at once when it is told to, also while it waits', async () => {
    const { events, end } = watch([fails], { delayMs: () => 60_000 });
    await events.next();
    const next = events.next();
    setTimeout(end, 10);
    expect(await next).toEqual({ done: true, value: undefined });
  });
});

it('waits longer after each failure, up to half a minute, half of it by chance', () => {
  expect([1, 2, 3, 7, 1_000].map((failures) => reconnectDelayMs(failures, 0))).toEqual([
    250, 500, 1_000, 15_000, 15_000,
  ]);
  expect(reconnectDelayMs(1_000, 0.999)).toBeLessThanOrEqual(30_000);
});
