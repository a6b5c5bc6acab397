import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AttachmentKind } from '@runtime-enforcer/agent/kernel/attachment';
import { enforce, LISTED, makePlace, policyOf } from './bound-place.ts';
import { attachments, exactAttachments, openKernel, type Kernel } from './kernel.ts';
import { startStorm, type StormCounts } from './storm.ts';

const ALLOWED = '/usr/bin/allowed';
const FORBIDDEN = '/usr/bin/forbidden';
/** Where the kernel preempts; where it does not, a tenth shows that nothing is skipped. */
const FORBIDDEN_EXECS = 24_000;
const FORBIDDEN_EXECS_UNPREEMPTED = 2_400;
const STORM_LONGEST_S = 390;
/** A storm that met no race is run again, up to so often: without a miss nothing is shown. */
const ROUNDS_UNTIL_MISSED = 4;
const SKIPPED_ROUND_S = 12;
const QUIET_EXECS = 200;

interface Storm {
  readonly forbidden: StormCounts;
  readonly allowed: StormCounts;
  readonly misses: bigint;
  readonly denied: number;
  readonly caught: number;
  /** Paths of all records. */
  readonly recorded: readonly string[];
}

/** Opens the kernel with a place whose policy protects, and ends both whatever happens. */
async function withPlace(
  kind: AttachmentKind,
  use: (
    kernel: Kernel,
    storm: (options: readonly string[], seconds: number) => Promise<Storm>,
  ) => Promise<void>,
): Promise<void> {
  const kernel = await openKernel(kind);
  const place = await makePlace(kernel, `storm-${kind}`);
  const bound = await enforce(kernel, place, policyOf('storm', 'protect', LISTED));
  try {
    await use(kernel, async (options, seconds) => {
      const before = kernel.enforcer.recursionMisses();
      let counts: Awaited<ReturnType<typeof startStorm>> | undefined;
      // A loop that sleeps is what preempts the others, in the middle of a check.
      const sleeping = `${FORBIDDEN}@200`;
      const counted = await kernel.counted(async () => {
        counts = await startStorm(
          place,
          seconds,
          ...['--cpu', '0', ...options],
          ...[sleeping, sleeping, sleeping, sleeping, ALLOWED],
        );
      });
      if (counts === undefined) throw new Error('the storm did not end');
      return {
        forbidden: counts.of(FORBIDDEN),
        allowed: counts.of(ALLOWED),
        misses: kernel.enforcer.recursionMisses() - before,
        denied: counted['denied'] ?? 0,
        caught: counted['caught_by_copy'] ?? 0,
        recorded: [...new Set(kernel.events.map(({ path }) => Buffer.from(path).toString('latin1')))],
      };
    });
  } finally {
    await bound.unbind();
    await place.close();
    await kernel.stop();
  }
}

const degraded = attachments().filter((kind) => !exactAttachments().includes(kind));
const wanted = degraded.length > 0 ? FORBIDDEN_EXECS : FORBIDDEN_EXECS_UNPREEMPTED;

describe('forbidden execs beside allowed ones, on one CPU', () => {
  for (const kind of exactAttachments()) {
    it(`none passes, no allowed one is denied and no path is mixed, by ${kind}`, async () => {
      await withPlace(kind, async (_kernel, storm) => {
        const { forbidden, allowed, misses, denied, recorded } = await storm(
          ['--count', String(wanted)],
          STORM_LONGEST_S,
        );
        console.log(`${forbidden.denied} denied, ${allowed.ran} allowed, ${misses} misses`);
        ok(forbidden.denied >= wanted, `only ${forbidden.denied} forbidden execs`);
        deepStrictEqual([forbidden.ran, forbidden.other, allowed.denied, allowed.other], [0, 0, 0, 0]);
        ok(allowed.ran > wanted / 100, `only ${allowed.ran} allowed execs`);
        strictEqual(misses, 0n);
        strictEqual(denied, forbidden.denied);
        deepStrictEqual(recorded, [FORBIDDEN]);
      });
    });
  }

  for (const kind of degraded) {
    it(`what ${kind} is skipped for is counted, and the node is degraded`, async () => {
      await withPlace(kind, async (kernel, storm) => {
        let misses = 0n;
        for (let round = 0; round < ROUNDS_UNTIL_MISSED && misses === 0n; round++) {
          const result = await storm([], SKIPPED_ROUND_S);
          misses += result.misses;
          const { forbidden, allowed, caught, recorded } = result;
          console.log(
            `${forbidden.ran} of ${forbidden.ran + forbidden.denied} passed, ${result.misses} misses, ${caught} caught by a copy`,
          );
          ok(forbidden.denied > forbidden.ran, 'more passed than were denied');
          strictEqual(allowed.denied, 0);
          deepStrictEqual(recorded, [FORBIDDEN]);
        }
        ok(misses > 0n, 'the kernel skipped nothing: this run proves nothing');
        ok(kernel.enforcer.attachment.degraded?.includes('lsm='), kernel.enforcer.attachment.degraded);
      });
    });

    it(`a copy catches nothing where ${kind} is not skipped`, async () => {
      await withPlace(kind, async (_kernel, storm) => {
        const { forbidden, misses, denied, caught } = await storm(['--count', String(QUIET_EXECS)], 60);
        strictEqual(denied, forbidden.denied);
        ok(BigInt(caught) <= misses, `${caught} caught, ${misses} misses`);
      });
    });
  }
});
