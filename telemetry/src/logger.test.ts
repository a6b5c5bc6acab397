import { expect, it } from 'vitest';
import { describeError } from './error-text.ts';
import { createLogger, type LogLevel } from './logger.ts';

function logged(level: LogLevel) {
  const lines: string[] = [];
  let full = false;
  let dropped = 0;
  const output = { write: (line: string) => !full && lines.push(line) > 0 };
  const log = createLogger({ component: 'agent', level, output, onDropped: () => dropped++ });
  return {
    log,
    records: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    fill: () => (full = true),
    dropped: () => dropped,
  };
}

it('writes one JSON object a line, from the given level on', () => {
  const { log, records } = logged('warn');
  log.info({}, 'not this');
  log.warn({ pod: 'a\nb', count: 2n }, 'this');
  expect(records()).toEqual([
    {
      level: 'warn',
      time: expect.any(String) as string,
      component: 'agent',
      pod: 'a\nb',
      count: 2,
      msg: 'this',
    },
  ]);
});

it('tells an error by its messages, and a fault of the program with its stack', () => {
  const { log, records } = logged('info');
  log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'x');
  log.error({ err: new TypeError('undefined is not a function') }, 'x');
  expect(records()[0]?.['err']).toBe('outer: inner');
  expect(records()[1]?.['err']).toMatchObject({ stack: expect.stringContaining('logger.test.ts') as string });
});

it('counts the lines that nobody takes', () => {
  const { log, fill, dropped } = logged('info');
  fill();
  log.error({}, 'x');
  expect(dropped()).toBe(1);
});

it('describes chains of errors once each, however long, and things that are no errors', () => {
  const same = new Error('cannot open: ENOENT', { cause: new Error('ENOENT') });
  expect(describeError(same)).toBe('cannot open: ENOENT');
  const circle = new Error('a');
  circle.cause = new Error('b', { cause: circle });
  expect(describeError(circle)).toBe('a: b');
  expect(describeError('text')).toBe("'text'");
});
