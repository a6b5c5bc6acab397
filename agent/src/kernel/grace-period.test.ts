import { describe, expect, it } from 'vitest';
import { createGracePeriod } from './grace-period.ts';

/** Waits that a test ends by hand. */
function manualWaits() {
  const waits: { resolve: () => void; reject: (error: Error) => void }[] = [];
  return {
    waits,
    native: {
      waitForReaders: () =>
        new Promise<void>((resolve, reject) => {
          waits.push({ resolve, reject });
        }),
    },
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('grace period', () => {
  it('begins anew for those who come while one runs, and they share it', async () => {
    const { waits, native } = manualWaits();
    const grace = createGracePeriod(native);
    const passed: string[] = [];
    void grace.passed().then(() => passed.push('first'));
    void grace.passed().then(() => passed.push('second'));
    void grace.passed().then(() => passed.push('third'));
    expect(waits).toHaveLength(1);
    waits[0]?.resolve();
    await turn();
    expect(passed).toEqual(['first']);
    expect(waits).toHaveLength(2);
    waits[1]?.resolve();
    await turn();
    expect(passed).toEqual(['first', 'second', 'third']);
    void grace.passed();
    expect(waits).toHaveLength(3);
  });

  it('that fails does not end the next one', async () => {
    const { waits, native } = manualWaits();
    const grace = createGracePeriod(native);
    const first = grace.passed();
    const second = grace.passed();
    waits[0]?.reject(new Error('no memory'));
    await expect(first).rejects.toThrow('no memory');
    await turn();
    waits[1]?.resolve();
    await second;
  });
});
