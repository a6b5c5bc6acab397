import { describe, expect, it } from 'vitest';
import { createBootClock } from '@runtime-enforcer/agent/kernel/boot-clock';
import { decodeExecEvents } from '@runtime-enforcer/agent/kernel/exec-record';
import { fakeContainer } from '@runtime-enforcer/agent/node/fake-kernel';
import { batchOf } from './record-replay.ts';

describe('batchOf', () => {
  it('writes what the agent reads as records of these containers', () => {
    const held = fakeContainer({ slot: 3, generation: 7, state: 'enforced' });
    const learned = fakeContainer({ slot: 4, generation: 9, state: 'learning' });
    const paths = ['/usr/bin/a', '/opt/b/c', '/d'].map((path) => Buffer.from(path));
    const batch = batchOf([held, learned], paths, 2, 4);
    const events = decodeExecEvents(
      batch,
      createBootClock(),
      (slot, generation) =>
        [held, learned].find((each) => each.slot === slot && each.generation === generation),
      () => expect.fail('a record cannot be read'),
    );
    const shown = events.map(({ kind, container, path }) => [
      kind,
      container?.slot,
      Buffer.from(path).toString(),
    ]);
    expect(shown).toEqual([
      ['violation', 3, '/d'],
      ['learned', 4, '/usr/bin/a'],
      ['violation', 3, '/opt/b/c'],
      ['learned', 4, '/d'],
    ]);
    // The same path of the same container is the same kind of record.
    const again = batchOf([held, learned], paths, 2 + 6, 4);
    expect([...again.data.subarray(16, 24)]).toEqual([...batch.data.subarray(16, 24)]);
  });
});
