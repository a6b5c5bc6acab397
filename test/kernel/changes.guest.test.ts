import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { enforce, makePlace, policyOf, type Place } from './bound-place.ts';
import { exactAttachments, openKernel, type Kernel } from './kernel.ts';
import { STORM_MIN, startStorm } from './storm.ts';

const ALLOWED = '/usr/bin/allowed';
const FORBIDDEN = '/usr/bin/forbidden';
const STORM_S = 5;
const CHANGES_MS = 4_000;
/** The storm leaves little time on two processors; each change waits until no program looks into the old list. */
const CHANGES_MIN = 6;

for (const kind of exactAttachments()) {
  describe(`changes under a storm of execs, by ${kind}`, () => {
    let kernel: Kernel;
    let place: Place;

    before(async () => {
      kernel = await openKernel(kind);
      place = await makePlace(kernel, `changes-${kind}`);
    });
    after(async () => {
      await place.close();
      await kernel.stop();
    });

    it('field 25, 50: never show a mode beside a list that it does not belong to', async () => {
      // One list protects and lacks the one program, the other one monitors and lacks the other.
      const protecting = policyOf('changes', 'protect', [ALLOWED]);
      const monitoring = policyOf('changes', 'monitor', [FORBIDDEN]);
      const bound = await enforce(kernel, place, protecting);
      const storm = startStorm(place, STORM_S, `${ALLOWED},${FORBIDDEN}`, `${FORBIDDEN},${ALLOWED}`);
      let changes = 0;
      for (const end = Date.now() + CHANGES_MS; Date.now() < end; changes++) {
        const { state, message } = await kernel.table.apply(changes % 2 === 0 ? monitoring : protecting);
        strictEqual(state, 'ready', message);
      }
      const counts = await storm;
      await bound.unbind();
      ok(changes >= CHANGES_MIN, `${changes} changes`);
      strictEqual(counts.of(ALLOWED).denied, 0);
      ok(
        counts.of(ALLOWED).ran >= STORM_MIN &&
          counts.of(FORBIDDEN).ran > 5 &&
          counts.of(FORBIDDEN).denied > 5,
      );
      const mixtures = new Set(
        kernel.events.map(({ mode, path, reason }) => [mode, Buffer.from(path).toString(), reason].join(' ')),
      );
      deepStrictEqual([...mixtures].sort(), [`monitor ${ALLOWED} Unlisted`, `protect ${FORBIDDEN} Unlisted`]);
    });

    it('never deny what both lists hold, and never let run what none does', async () => {
      const lists = [[ALLOWED], [ALLOWED, '/nowhere/a'], [ALLOWED, '/nowhere/b', '/nowhere/c']];
      const bound = await enforce(kernel, place, policyOf('lists', 'protect', [ALLOWED]));
      const storm = startStorm(place, STORM_S, ALLOWED, FORBIDDEN, `${ALLOWED},${FORBIDDEN}`);
      let changes = 0;
      for (const end = Date.now() + CHANGES_MS; Date.now() < end; changes++) {
        await kernel.table.apply(policyOf('lists', 'protect', lists[changes % lists.length] ?? []));
      }
      const counts = await storm;
      await bound.unbind();
      ok(changes >= CHANGES_MIN, `${changes} changes`);
      deepStrictEqual([counts.of(ALLOWED).denied, counts.of(FORBIDDEN).ran], [0, 0]);
      ok(counts.of(ALLOWED).ran >= STORM_MIN && counts.of(FORBIDDEN).denied >= STORM_MIN);
    });
  });
}
