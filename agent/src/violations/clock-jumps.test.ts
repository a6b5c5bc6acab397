import { expect, it } from 'vitest';
import { createBootClock } from '../kernel/boot-clock.ts';
import { fakeContainer, fakeEvent, fakeKey, fakeReporting, fakeSeen } from '../node/fake-kernel.ts';
import { createViolationJournal } from './violation-journal.ts';
import type { JournalLine } from './violation-line.ts';

const YEAR_MS = 365 * 86_400_000;
const NOW_MS = Date.UTC(2026, 0, 1);
const CONTAINER = fakeContainer({ policy: 'shop/web' });
const HERE = new Set([CONTAINER.containerId]);

/** A journal, and the two clocks of its node. */
function journalWithClocks() {
  let wallMs = NOW_MS;
  let upMs = 3_600_000;
  const written: JournalLine[] = [];
  const ended: string[] = [];
  const boot = createBootClock({ uptime: () => upMs / 1_000, now: () => wallMs });
  const journal = createViolationJournal({
    ...{ nodeName: 'node-1', write: (line) => void written.push(line), ...fakeReporting() },
    ...{ now: () => wallMs, monotonicMs: () => upMs, onEnded: (containerId) => void ended.push(containerId) },
  });
  const happen = (path: string): void =>
    journal.events([
      fakeEvent(CONTAINER, {
        ...{ key: fakeKey(path), path: new TextEncoder().encode(path) },
        timeMs: boot.epochMs(BigInt(upMs) * 1_000_000n),
      }),
    ]);
  return {
    ...{ journal, written, ended, happen },
    bootMs: () => boot.epochMs(BigInt(upMs) * 1_000_000n),
    pass: (ms: number) => {
      wallMs += ms;
      upMs += ms;
    },
    setWall: (byMs: number) => (wallMs += byMs),
  };
}

it.each([
  ['back', -20 * YEAR_MS],
  ['forward', 20 * YEAR_MS],
])(
  'a wall clock that is set %s keeps no container that ended, and loses none that has just ended',
  (_, jumpMs) => {
    const { journal, ended, happen, written, pass, setWall } = journalWithClocks();
    happen('/bin/a');
    journal.counted(new Set());
    setWall(jumpMs);
    journal.counted(new Set());
    expect(ended).toEqual([]);
    happen('/bin/b');
    expect(written.map((line) => line.event === 'policy_violation' && line.executablePath)).toEqual([
      '/bin/a',
      '/bin/b',
    ]);
    pass(16_000);
    journal.counted(new Set());
    expect(ended).toEqual([CONTAINER.containerId]);
  },
);

it.each([-20 * YEAR_MS, -1, 1, 20 * YEAR_MS])(
  'counts stay exact and times in order over a wall clock that is set by %i ms',
  (jumpMs) => {
    const { journal, happen, written, pass, setWall, bootMs } = journalWithClocks();
    happen('/bin/a');
    journal.counts(CONTAINER, 1n, []);
    journal.counted(HERE);
    setWall(jumpMs);
    pass(2_000);
    for (const [total, count] of [
      [5n, 5n],
      [9n, 9n],
    ] as const) {
      const at = bootMs();
      journal.counts(CONTAINER, total, [
        fakeSeen(CONTAINER, '/bin/a', count, { firstMs: at - 100, lastMs: at }),
      ]);
      journal.counted(HERE);
      pass(5_000);
    }
    const last = written.at(-1);
    if (last?.event !== 'policy_violation') throw new Error('expected a violation');
    expect(last.occurrences).toBe(9);
    expect(last.firstObservedTimestamp <= last.lastObservedTimestamp).toBe(true);
    // What was seen after a jump forward is of then; a jump back makes nothing look younger than it was.
    expect(Date.parse(last.lastObservedTimestamp)).toBe(Math.max(NOW_MS, NOW_MS + jumpMs + 7_000));
  },
);
