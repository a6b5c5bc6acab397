import { expect, it } from 'vitest';
import { createStopStack } from './stop-stack.ts';

it('stops in the opposite order, whatever becomes of each part', async () => {
  const events: string[] = [];
  const stops = createStopStack((name, error) => events.push(`${name}: ${String(error)}`));
  stops.add('first', 1_000, () => Promise.resolve(void events.push('first')));
  stops.add('hangs', 20, () => new Promise(() => undefined));
  stops.add('fails', 1_000, () => Promise.reject(new Error('broken')));
  stops.add('throws', 1_000, () => {
    throw new Error('at once');
  });
  await stops.stop();
  expect(events).toEqual([
    'throws: Error: at once',
    'fails: Error: broken',
    'hangs: Error: not stopped after 20 ms',
    'first',
  ]);
});
