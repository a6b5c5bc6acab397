import { expect, it } from 'vitest';
import { eventually } from './eventually.ts';

it('returns the first answer that is one', async () => {
  let asked = 0;
  expect(await eventually('the third answer', () => (++asked === 3 ? 'third' : undefined))).toBe('third');
  expect(asked).toBe(3);
});

it('takes a falsy answer, and goes on after an error', async () => {
  let asked = 0;
  const answer = await eventually('zero', () => {
    if (++asked === 1) throw new Error('not yet');
    return 0;
  });
  expect(answer).toBe(0);
});

it('says what did not happen, and why the last question failed', async () => {
  const failing = eventually(
    () => 'the moon falls',
    () => {
      throw new Error('it hangs well');
    },
    30,
  );
  await expect(failing).rejects.toThrow('did not happen within 30 ms: the moon falls');
  await expect(failing).rejects.toMatchObject({ cause: new Error('it hangs well') });
});
