import { PassThrough } from 'node:stream';
import type { ClientReadableStream } from '@grpc/grpc-js';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { advance, watchAgent } from '@runtime-enforcer/rpc/agent-watch';
import { observerMethods } from '@runtime-enforcer/rpc/observer-service';
import {
  NO_CURSOR,
  type NodeReport,
  type ReportedViolation,
  type WatchCursors,
} from '@runtime-enforcer/rpc/reported';
import { createCumulativeLog, type KeptLog } from '../violations/cumulative-log.ts';
import { exampleSources, exampleViolation } from './observer-example.ts';
import { createPolicyRevisions } from './policy-revisions.ts';
import { streamReports } from './watch-stream.ts';

/** What happens while a controller watches an agent. */
type Step =
  | { readonly kind: 'violation'; readonly key: number; readonly times: number }
  | { readonly kind: 'containerEnds'; readonly key: number }
  | { readonly kind: 'reads'; readonly reports: number }
  | { readonly kind: 'acknowledges' }
  | { readonly kind: 'connectionBreaks' }
  /** Before it has stored what it read last. */
  | { readonly kind: 'controllerDies' }
  /** With an empty journal; the controller had read the earlier one. */
  | { readonly kind: 'agentStartsAnew' };

const key = fc.nat({ max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('violation'), key, times: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('containerEnds'), key }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('reads'), reports: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('acknowledges') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('connectionBreaks') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('controllerDies') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('agentStartsAnew') }) },
);

/** What survives a controller: counts and cursors, written together. */
interface Stored {
  readonly counts: ReadonlyMap<string, number>;
  readonly cursors: WatchCursors;
}

function counted({ counts, cursors }: Stored, report: NodeReport): Stored {
  const next = new Map(counts);
  for (const { value, previousCount } of report.violations?.entries ?? []) {
    const { podName, occurrences } = value;
    next.set(podName, (next.get(podName) ?? 0) + occurrences - previousCount);
  }
  return { counts: next, cursors: advance(cursors, report) };
}

/** An agent and a controller with a connection that breaks when it is told to. */
function createWorld() {
  let life = 0;
  let log = newLog();
  let generation = 0;
  const truth = new Map<string, number>();
  let inLog = new Map<string, number>();
  const ends = new Map<number, number>();
  let stored: Stored = {
    counts: new Map(),
    cursors: { policies: NO_CURSOR, violations: NO_CURSOR, observations: NO_CURSOR },
  };
  let connection: PassThrough | undefined;
  let ended = new AbortController();
  let events = watch();

  function newLog(): KeptLog<ReportedViolation> {
    return createCumulativeLog<ReportedViolation>({ incarnation: `life ${life}` });
  }

  function watch() {
    const { signal } = ended;
    return watchAgent(
      {
        agent: 'agent',
        renew: () => undefined,
        open: (cursors) => open(cursors) as unknown as ClientReadableStream<NodeReport>,
      },
      { signal, cursors: stored.cursors, delayMs: () => 0 },
    );
  }

  function open(cursors: WatchCursors): PassThrough {
    const stream = new PassThrough({ objectMode: true, highWaterMark: 1 });
    const gone = new AbortController();
    stream.on('close', () => gone.abort());
    connection = stream;
    const { requestSerialize, requestDeserialize, responseSerialize, responseDeserialize } =
      observerMethods.watch;
    const sources = exampleSources();
    void streamReports(
      {
        ...sources,
        violations: log,
        revisions: createPolicyRevisions(() => new Map()),
        onChange: () => () => undefined,
      },
      requestDeserialize(requestSerialize(cursors)),
      async (report) => {
        const received = responseDeserialize(responseSerialize(report));
        await new Promise<void>((resolve, reject) => {
          gone.signal.addEventListener('abort', () => reject(new Error('gone')));
          stream.write(received, () => resolve());
        });
      },
      gone.signal,
      { gatherMs: 0, heartbeatMs: 1 },
    ).catch(() => undefined);
    return Object.assign(stream, { cancel: () => stream.destroy() });
  }

  async function read(): Promise<NodeReport> {
    for (;;) {
      const { value } = await events.next();
      if (value?.kind === 'report') return value.report;
      if (value === undefined) throw new Error('the watch ended');
    }
  }

  async function readAll(): Promise<void> {
    while (
      stored.cursors.violations.incarnation !== log.incarnation ||
      stored.cursors.violations.sequence < log.sequence
    )
      stored = counted(stored, await read());
  }

  async function restart(): Promise<void> {
    ended.abort();
    await events.return();
    ended = new AbortController();
    events = watch();
  }

  const podName = (id: number): string => `${generation}-${id}-${ends.get(id) ?? 0}`;

  return {
    truth,
    stored: () => stored,
    readAll,
    stop: restart,
    async take(taken: Step): Promise<void> {
      switch (taken.kind) {
        case 'violation': {
          const name = podName(taken.key);
          const occurrences = (inLog.get(name) ?? 0) + taken.times;
          inLog.set(name, occurrences);
          truth.set(name, (truth.get(name) ?? 0) + taken.times);
          log.put(name, exampleViolation({ podName: name, occurrences }));
          return;
        }
        case 'containerEnds':
          log.remove(podName(taken.key));
          ends.set(taken.key, (ends.get(taken.key) ?? 0) + 1);
          return;
        case 'reads':
          for (let count = 0; count < taken.reports; count++) stored = counted(stored, await read());
          return;
        case 'acknowledges':
          if (stored.cursors.violations.incarnation === log.incarnation)
            log.acknowledge(stored.cursors.violations.sequence);
          return;
        case 'connectionBreaks':
          connection?.destroy(new Error('cut'));
          return;
        case 'controllerDies':
          counted(stored, await read());
          await restart();
          return;
        case 'agentStartsAnew':
          await readAll();
          life++;
          log = newLog();
          inLog = new Map();
          generation++;
          connection?.destroy(new Error('the agent ended'));
      }
    },
  };
}

it('counts every violation once, whoever dies and whatever breaks in between', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const world = createWorld();
      for (const taken of steps) await world.take(taken);
      await world.readAll();
      expect(world.stored().counts).toEqual(world.truth);
      await world.stop();
    }),
    { numRuns: 100 },
  );
});
