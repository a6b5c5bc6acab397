import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { describe, expect, it } from 'vitest';
import { createCumulativeLog } from '../violations/cumulative-log.ts';
import { createObservationBook, type ObservedExecs } from './observation-book.ts';

const WEB = { namespace: 'shop', name: 'deploy-web' };
const path = (text: string) => ({ containerName: 'main', executablePath: text as ExecutablePath });
const execs = (count: number, more: Partial<ObservedExecs> = {}): ObservedExecs => ({
  ...{ count, firstMs: 1_000, lastMs: 2_000, origins: ['entrypoint'], podName: 'web-1' },
  ...more,
});

function opened(maxEntries?: number) {
  const log = createCumulativeLog<NodeObservation>({ incarnation: 'i' });
  const book = createObservationBook({
    log,
    nodeName: 'node-1',
    ...(maxEntries !== undefined && { maxEntries }),
  });
  return { log, book };
}

/** What a reader that adds up differences has counted. */
function total(log: ReturnType<typeof opened>['log']): number {
  let sum = 0;
  for (const { value, previous } of log.changedSince(0, 1_000).entries)
    sum += value.count - (previous?.value.count ?? 0);
  return sum;
}

describe('a book of observations', () => {
  it('tells a new path at once, and repeats together', () => {
    const { log, book } = opened();
    book.add(WEB, path('/a'), execs(1));
    expect(log.sequence).toBe(1);
    book.add(WEB, path('/a'), execs(4, { podName: 'web-2', origins: ['exec'], firstMs: 500 }));
    book.add(WEB, path('/a'), execs(5));
    expect(log.sequence).toBe(1);
    book.flush();
    expect(log.sequence).toBe(2);
    expect([...log.values()].map(([, value]) => value)).toEqual([
      {
        ...{ namespace: 'shop', proposal: 'deploy-web', ...path('/a'), count: 10 },
        ...{ firstSeen: '1970-01-01T00:00:00.500Z', lastSeen: '1970-01-01T00:00:02.000Z' },
        ...{ origins: ['entrypoint', 'exec'], pods: ['web-1', 'web-2'], nodes: ['node-1'] },
      },
    ]);
    book.flush();
    expect(log.sequence).toBe(2);
  });

  it('never counts under a key whose count had begun before', () => {
    const { log, book } = opened();
    book.add(WEB, path('/a'), execs(7));
    expect(total(log)).toBe(7);
    book.add(WEB, path('/a'), execs(1));
    book.remove(WEB);
    expect(book.size).toBe(0);
    // The workload is back before anybody acknowledged.
    book.add(WEB, path('/a'), execs(2));
    expect(total(log)).toBe(10);
    log.acknowledge(log.sequence);
    expect(log.size.keys).toBe(1);
  });

  it('has an end', () => {
    const { book } = opened(2);
    expect(['/a', '/b', '/c', '/a'].map((text) => book.add(WEB, path(text), execs(1)))).toEqual([
      true,
      true,
      false,
      true,
    ]);
    book.remove(WEB);
    expect(book.add(WEB, path('/c'), execs(1))).toBe(true);
  });

  it('tells what waits when it is closed', () => {
    const { log, book } = opened();
    book.start();
    book.add(WEB, path('/a'), execs(1));
    book.add(WEB, path('/a'), execs(1));
    book.stop();
    expect(total(log)).toBe(2);
  });
});
