import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type GuestEvent, decodeGuestLine } from './guest-event.ts';
import { NODE_BINARY } from './repository.ts';

const REPORTER = join(import.meta.dirname, 'guest-reporter.ts');
const HANGS_MS = 15_000;

describe('guestReporter', () => {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'reporter-test-'));
    writeFileSync(join(directory, 'reporter.mjs'), `export { guestReporter as default } from '${REPORTER}';`);
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const run = (tests: string): GuestEvent[] => {
    const file = join(directory, 'tests.mjs');
    writeFileSync(file, `import { describe, it, test } from 'node:test';\n${tests}`);
    const reporter = `--test-reporter=${join(directory, 'reporter.mjs')}`;
    const args = [
      '--test-force-exit',
      reporter,
      '--test-reporter-destination=stdout',
      '--test-timeout=1000',
      file,
    ];
    const { stdout, error } = spawnSync(NODE_BINARY, args, { encoding: 'utf8', timeout: HANGS_MS });
    expect(error).toBeUndefined();
    return stdout.split('\n').flatMap((line) => decodeGuestLine(line).event ?? []);
  };
  const results = (events: GuestEvent[]): string[] =>
    events.flatMap((event) =>
      'name' in event && event.event !== 'running' ? [`${event.event} ${event.name}`] : [],
    );

  it('names every test by its place, and counts a parent only for its own failure', () => {
    const events = run(`
      describe('outer', () => {
        it('good', () => {});
        it('bad', () => { throw new Error('no reason'); });
        it.skip('left', () => {});
        it.todo('later');
      });
      test('parent', async (t) => {
        await t.test('child', () => { throw new Error('x'); });
        await t.test('other child', () => {});
      });
      test('last', () => {});
    `);
    expect(results(events)).toEqual([
      'passed outer › good',
      'failed outer › bad',
      'skipped outer › left',
      'skipped outer › later',
      'failed parent › child',
      'passed parent › other child',
      'passed last',
    ]);
    expect(events.at(-1)).toEqual({ event: 'end' });
    const bad = events.find((event) => event.event === 'failed');
    expect(bad).toMatchObject({ message: expect.stringContaining('no reason') as string });
  });

  it('comes to its end, with all that was told, when a failed test leaves something running', () => {
    const many = Array.from({ length: 300 }, (_, i) => `it('number ${i}', () => {});`).join('\n');
    const events = run(`
      describe('outer', () => {
        it('bad', () => { setInterval(() => {}, 1_000); throw new Error('x'.repeat(100_000)); });
        ${many}
      });
    `);
    expect(results(events)).toHaveLength(301);
    expect(events.at(-1)).toEqual({ event: 'end' });
  });

  it('reports a hook that fails and a test that takes too long', () => {
    const events = run(`
      import { before } from 'node:test';
      describe('hooked', () => { before(() => { throw new Error('hook'); }); it('inside', () => {}); });
      test('slow', async () => { await new Promise((resolve) => setTimeout(resolve, 3_000)); });
    `);
    expect(results(events).filter((line) => line.startsWith('failed')).length).toBeGreaterThanOrEqual(2);
    expect(results(events)).toContain('failed slow');
    expect(results(events).some((line) => line.startsWith('passed'))).toBe(false);
  });

  it('says which test runs before it ends, and no end when the process goes away', () => {
    const events = run(`
      test('one', () => {});
      test('fatal', async () => {
        await new Promise((resolve) => setTimeout(resolve, 100));
        process.kill(process.pid, 'SIGKILL');
      });
    `);
    expect(events.at(-1)).toEqual({ event: 'running', name: 'fatal' });
  });
});
