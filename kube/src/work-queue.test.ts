import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from './api-error.ts';
import { TerminalError, type WorkQueue, workQueue, type WorkQueueOptions } from './work-queue.ts';

let queue: WorkQueue | undefined;
afterEach(async () => await queue?.stop());

function open(process: WorkQueueOptions['process'], options: Partial<WorkQueueOptions> = {}) {
  const failures: [string, string, number | undefined][] = [];
  const mine = workQueue({
    process,
    onFailure: (key, error, retryMs) => failures.push([key, (error as Error).message, retryMs]),
    backOff: { baseMs: 10, maxMs: 40, jitter: 0 },
    ...options,
  });
  queue = mine;
  return { queue: mine, failures };
}

describe('workQueue', () => {
  it('works on each key once, however often it was added before its turn', async () => {
    const seen: string[] = [];
    const { queue: mine } = open((key) => {
      seen.push(key);
      return undefined;
    });
    for (let round = 0; round < 3; round++) for (const key of ['a', 'b']) mine.add(key);
    expect(mine.depth()).toEqual({ waiting: 2, running: 0, delayed: 0 });
    mine.start();
    await sleep(30);
    expect(seen).toEqual(['a', 'b']);
  });

  it('never works on a key twice at once, and once more if it was added meanwhile', async () => {
    let running = 0;
    let runs = 0;
    const { queue: mine } = open(
      async () => {
        runs++;
        expect(++running).toBe(1);
        await sleep(20);
        running--;
        return undefined;
      },
      { concurrency: 4 },
    );
    mine.start();
    mine.add('a');
    await sleep(5);
    for (let round = 0; round < 5; round++) mine.add('a');
    await sleep(100);
    expect(runs).toBe(2);
  });

  it('works on as many keys at once as allowed, and one slow key delays no other', async () => {
    const done: string[] = [];
    const { queue: mine } = open(
      async (key) => {
        await sleep(key === 'slow' ? 300 : 1);
        done.push(key);
        return undefined;
      },
      { concurrency: 2 },
    );
    mine.start();
    for (const key of ['slow', 'a', 'b', 'c']) mine.add(key);
    await vi.waitFor(() => expect(done).toHaveLength(3));
    expect(done).toEqual(['a', 'b', 'c']);
  });

  it('waits longer after each failure, and forgets that after a success', async () => {
    let left = 4;
    const { queue: mine, failures } = open(() => {
      if (left-- > 0) throw new Error('no');
      return undefined;
    });
    mine.start();
    mine.add('a');
    await vi.waitFor(() => expect(left).toBe(-1));
    expect(failures.map(([, , retryMs]) => retryMs)).toEqual([10, 20, 40, 40]);
    left = 1;
    mine.add('a');
    await vi.waitFor(() => expect(left).toBe(-1));
    expect(failures.at(-1)).toEqual(['a', 'no', 10]);
  });

  it('gives up after so many failures, and at once after a terminal one', async () => {
    const { queue: mine, failures } = open(
      (key) => {
        throw key === 'hopeless' ? new TerminalError('never') : new Error('no');
      },
      { maxFailures: 2 },
    );
    mine.start();
    mine.add('hopeless');
    mine.add('a');
    await vi.waitFor(() => expect(failures).toHaveLength(3));
    await sleep(60);
    expect(failures).toEqual([
      ['hopeless', 'never', undefined],
      ['a', 'no', 10],
      ['a', 'no', undefined],
    ]);
    mine.add('hopeless');
    await vi.waitFor(() => expect(failures).toHaveLength(4));
  });

  it('waits as long as the API server asks', async () => {
    const { queue: mine, failures } = open(() => {
      throw new ApiError('x', 429, {}, 7_000);
    });
    mine.start();
    mine.add('a');
    await vi.waitFor(() => expect(failures[0]?.[2]).toBe(7_000));
    expect(mine.depth().delayed).toBe(1);
  });

  it('runs again after the time that the work asks for, or sooner when added', async () => {
    const times: number[] = [];
    const { queue: mine } = open(() => {
      times.push(performance.now());
      return times.length < 2 ? 50 : 60_000;
    });
    mine.start();
    mine.add('a');
    await vi.waitFor(() => expect(times).toHaveLength(2));
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(48);
    mine.add('a');
    await vi.waitFor(() => expect(times).toHaveLength(3));
    expect(mine.depth()).toEqual({ waiting: 0, running: 0, delayed: 1 });
  });

  it('an addition for later never postpones one for sooner', async () => {
    const process = vi.fn(() => undefined);
    const { queue: mine } = open(process);
    mine.start();
    mine.addAfter('a', 20);
    mine.addAfter('a', 60_000);
    await vi.waitFor(() => expect(process).toHaveBeenCalledOnce());
  });

  it('stops: tells the running work, waits for it, and does nothing more', async () => {
    let ended = false;
    const { queue: mine, failures } = open(async (_, signal) => {
      await sleep(60_000, undefined, { signal }).catch(() => undefined);
      await sleep(20);
      ended = true;
      throw new Error('late');
    });
    mine.start();
    mine.add('a');
    mine.add('b');
    await sleep(10);
    await mine.stop();
    expect(ended).toBe(true);
    mine.add('c');
    expect(failures).toEqual([]);
    expect(mine.depth()).toEqual({ waiting: 0, running: 0, delayed: 0 });
  });
});
