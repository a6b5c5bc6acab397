import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { boundedOutput } from './bounded-output.ts';

/** A stream whose reader takes a text only when it is told to. */
function slowStream(): { stream: Writable; taken: string[]; take: () => void } {
  const taken: string[] = [];
  const waiting: (() => void)[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      waiting.push(() => {
        taken.push(chunk.toString());
        done();
      });
    },
  });
  return { stream, taken, take: () => waiting.shift()?.() };
}

it('takes what fits and drops the rest', () => {
  const { stream, taken, take } = slowStream();
  const output = boundedOutput(stream, 10);
  expect([output.write('12345'), output.write('äö'), output.write('xx')]).toEqual([true, true, false]);
  take();
  expect(output.write('xx')).toBe(true);
  expect(taken).toEqual(['12345']);
});

it('flushes what was taken, and waits no longer than it is told to', async () => {
  const { stream, taken, take } = slowStream();
  const output = boundedOutput(stream, 100);
  output.write('a');
  const timer = setInterval(take, 1);
  await output.flush(5_000);
  clearInterval(timer);
  expect(taken).toContain('a');
  output.write('b');
  await output.flush(10);
  expect(taken).not.toContain('b');
});

it('survives a reader that goes away', async () => {
  const errors: Error[] = [];
  const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) });
  const output = boundedOutput(stream, 100, (error) => errors.push(error));
  output.write('a');
  await new Promise((resolve) => setImmediate(resolve));
  expect(errors).toHaveLength(1);
  expect(output.write('b')).toBe(false);
  await output.flush(10);
});
