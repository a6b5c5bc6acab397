import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createHandshakeAdmission } from './connection-limits.ts';

const LIMITS = { pending: 4, pendingPerAddress: 2, perSecond: 1, burst: 3 };

describe('createHandshakeAdmission', () => {
  it('lets an address have so many under way, and again when one has ended', () => {
    const admission = createHandshakeAdmission<string>(LIMITS);
    expect(admission.begin('a1', 'a', 0)).toEqual({ admitted: true });
    expect(admission.begin('a2', 'a', 0)).toEqual({ admitted: true });
    expect(admission.begin('a3', 'a', 0)).toEqual({ admitted: false });
    admission.end('a1');
    expect(admission.begin('a4', 'a', 1_000)).toEqual({ admitted: true });
  });

  it('lets an address open so many at once, and then as time passes', () => {
    const admission = createHandshakeAdmission<string>(LIMITS);
    const attempt = (nowMs: number): boolean => {
      const { admitted } = admission.begin('a', 'a', nowMs);
      admission.end('a');
      return admitted;
    };
    expect([0, 0, 0, 0, 900, 1_000, 1_000, 60_000, 60_000, 60_000, 60_000].map(attempt)).toEqual([
      ...[true, true, true, false],
      ...[false, true, false],
      ...[true, true, true, false],
    ]);
  });

  it('gives up the oldest of all for a new one', () => {
    const admission = createHandshakeAdmission<string>(LIMITS);
    for (const name of ['a', 'b', 'c', 'd']) admission.begin(name, name, 0);
    expect(admission.begin('e', 'e', 0)).toEqual({ admitted: true, evicted: 'a' });
    expect(admission.pending).toBe(4);
  });

  it('never has more under way than it may, and always admits an address that it has not seen', () => {
    const operation = fc.record({
      address: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      ends: fc.boolean(),
      waitMs: fc.nat({ max: 2_000 }),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const admission = createHandshakeAdmission<number>(LIMITS);
        let nowMs = 0;
        for (const [connection, { address, ends, waitMs }] of operations.entries()) {
          nowMs += waitMs;
          admission.begin(connection, address, nowMs);
          if (ends) admission.end(connection);
          expect(admission.pending).toBeLessThanOrEqual(LIMITS.pending);
        }
        expect(admission.begin(-1, 'new', nowMs).admitted).toBe(true);
      }),
    );
  });
});
