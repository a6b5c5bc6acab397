import fc from 'fast-check';
import { expect, it } from 'vitest';
import { acknowledgedPlace } from './acknowledged-place.ts';

it('is the last entry before the first that is not stored', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(30), { maxLength: 80 }), (steps) => {
      const place = acknowledgedPlace('i');
      const stored: (() => void)[] = [];
      const isStored: boolean[] = [];
      for (const step of steps) {
        if (step > stored.length - 1) {
          isStored.push(false);
          stored.push(place.read(stored.length + 1));
        } else {
          stored[step]?.();
          isStored[step] = true;
        }
        const first = isStored.indexOf(false);
        expect(place.cursor).toEqual({ incarnation: 'i', sequence: first < 0 ? isStored.length : first });
      }
    }),
  );
});
