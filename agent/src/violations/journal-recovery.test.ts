import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { recoverJournal } from './journal-recovery.ts';

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'journal-recovery-'));
  file = join(directory, 'violations.jsonl');
});
afterEach(async () => rm(directory, { recursive: true }));

function line(more: object): string {
  return JSON.stringify({
    ...{ event: 'policy_violation', containerId: 'c1', executablePath: '/bin/a', action: 'protect' },
    ...{ occurrences: 1, recordKey: '1.1.1.2.a' },
    firstObservedTimestamp: '2026-01-01T00:00:00.000Z',
    lastObservedTimestamp: '2026-01-01T00:00:00.000Z',
    ...more,
  });
}

it('finds nothing where there is no file', async () => {
  expect(await recoverJournal(file)).toEqual([]);
});

it('takes the latest line of each violation, over the rotated file and the current one', async () => {
  await writeFile(`${file}.1`, `${line({})}\n${line({ occurrences: 2 })}\n${line({ containerId: 'c2' })}\n`);
  await writeFile(
    file,
    `${line({ occurrences: 7 })}\n${line({ action: 'monitor' })}\n` +
      `{"event":"policy_violation_overflow","containerId":"c1","occurrences":4}\n`,
  );
  const found = await recoverJournal(file);
  expect(found.map(({ event, containerId, occurrences }) => [event, containerId, occurrences])).toEqual([
    ['policy_violation', 'c1', 7],
    ['policy_violation', 'c2', 1],
    ['policy_violation', 'c1', 1],
    ['policy_violation_overflow', 'c1', 4],
  ]);
});

it('passes over what the agent did not write', async () => {
  const bad = [
    ...['', 'text', 'null', '[]', '{"event":"policy_violation"}', line({}).slice(0, 40)],
    ...[line({ occurrences: -1 }), line({ occurrences: 'many' }), line({ action: 'allow' })],
    ...[line({ firstObservedTimestamp: 'soon' }), line({ containerId: 5 }), line({ recordKey: 5 })],
    `{"event":"policy_violation","containerId":"${'c'.repeat(100_000)}"}`,
  ];
  await writeFile(file, Buffer.concat([Buffer.from(`${bad.join('\n')}\n`), Buffer.from([0xff, 0x0a])]));
  expect(await recoverJournal(file)).toEqual([]);
});
