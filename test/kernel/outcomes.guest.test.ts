import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { rmdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { OUTCOME_NAMES } from '@runtime-enforcer/agent/kernel/outcomes';
import { bindPlace, enforce, LISTED, makePlace, policyOf, type Place } from './bound-place.ts';
import { PROGRAMS } from './guest-files.ts';
import { attachments, exactAttachments, openKernel, type Kernel } from './kernel.ts';
import { eventually } from '../runtime/eventually.ts';
import { attachWithoutRoom } from './roomless-program.ts';

const run = promisify(execFile);
const FORBIDDEN = '/usr/bin/forbidden';
const ALLOWED = '/usr/bin/allowed';
/** Lengths of paths whose records are together several times what a ring holds. */
const LONG_PATHS = { from: 1_500, to: 1_649 };
const SHORTER_PATHS = { from: 250, to: 500 };
/** pathlengths runs every path in so many variants. */
const VARIANTS = 3;
/** Lengths whose records fit into a ring. */
const PORTION = 10;

/** What is there besides: counts of the host's own processes, which go on. */
function withoutHost(counted: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counted).filter(([name]) => name !== 'untracked'));
}

/** Whether pathlengths made the path, with these lengths. */
function isLong(path: string): boolean {
  return /^\/[ab]a/.test(path) && path.length >= LONG_PATHS.from && path.length <= LONG_PATHS.to;
}

/** Execs paths of these lengths while this process waits and does nothing else. */
function runLengths(place: Place, from: number, to: number): void {
  const argv = ['run', ALLOWED, '-', 'lengths', String(from), String(to)];
  execFileSync(`${PROGRAMS}/pathlengths`, argv, {
    env: { ENTER_CGROUP: place.cgroup, ENTER_PID: String(place.pid) },
  });
}

for (const kind of exactAttachments()) {
  describe(`every outcome, and exactly once, by ${kind}`, () => {
    let kernel: Kernel;
    let place: Place;
    let other: Place;
    let bound: Awaited<ReturnType<typeof enforce>>;
    const reached = new Set<string>();

    before(async () => {
      kernel = await openKernel(kind);
      place = await makePlace(kernel, 'outcomes');
      other = await makePlace(kernel, 'outcomes-other');
      bound = await enforce(kernel, place, policyOf('outcomes', 'protect', LISTED));
    });
    after(async () => {
      await other.close();
      await place.close();
      await kernel.stop();
    });

    /** Expects these counts and no other. */
    async function expectCounts(
      expected: Record<string, number>,
      action: () => Promise<unknown>,
    ): Promise<void> {
      const counted = await kernel.counted(action);
      for (const name of Object.keys(counted)) reached.add(name);
      deepStrictEqual(withoutHost(counted), expected);
    }

    it('allowed', async () => {
      await expectCounts({ allowed: 2 }, async () => await place.askAll([[ALLOWED], [ALLOWED]]));
    });

    it('denied, its repeats counted and not recorded', async () => {
      await expectCounts(
        { denied: 5, violation_repeated: 4 },
        async () => await place.askAll(Array.from({ length: 5 }, () => [FORBIDDEN])),
      );
    });

    it('monitored, apart from what was denied before', async () => {
      await kernel.table.apply(policyOf('outcomes', 'monitor', LISTED));
      await expectCounts(
        { monitored: 2, violation_repeated: 1 },
        async () => await place.askAll([[FORBIDDEN], [FORBIDDEN]]),
      );
      await kernel.table.apply(policyOf('outcomes', 'protect', LISTED));
    });

    it('learned, unbound and, outside of every container, untracked', async () => {
      const learning = bindPlace(kernel, other, 0, true);
      await expectCounts(
        { learned: 3, learning_repeated: 2 },
        async () => await other.askAll([[FORBIDDEN], [FORBIDDEN], [FORBIDDEN]]),
      );
      strictEqual(kernel.enforcer.containerTotals(learning.slot).learned, 3n);
      await kernel.slots.release(learning);
      const left = bindPlace(kernel, other, 0, false);
      await expectCounts({ unbound: 1 }, async () => await other.exec(FORBIDDEN));
      await kernel.slots.release(left);
      const counted = await kernel.counted(async () => await other.askAll([[FORBIDDEN], [FORBIDDEN]]));
      strictEqual(counted['untracked'], 2);
      reached.add('untracked');
    });

    it('no_policy and overridden', async () => {
      const slot = bindPlace(kernel, other, 4_001, false);
      await expectCounts({ denied: 1, no_policy: 1 }, async () => await other.exec(ALLOWED));
      kernel.enforcer.setOverride('monitor');
      await expectCounts({ monitored: 1, no_policy: 1 }, async () => await other.exec(ALLOWED));
      kernel.enforcer.setOverride('off');
      await expectCounts({ overridden: 1 }, async () => await other.exec(ALLOWED));
      kernel.enforcer.setOverride('none');
      await kernel.slots.release(slot);
    });

    it('other_mount_namespace, and unchecked where the rules say so', async () => {
      const argv = ['user-bind', FORBIDDEN, ALLOWED];
      await expectCounts({ allowed: 1, denied: 1, other_mount_namespace: 1 }, async () =>
        strictEqual(await place.exec('/opt/attack', ...argv), 'exit 66', place.output()),
      );
      await kernel.table.apply(policyOf('outcomes', 'protect', LISTED, 'unchecked'));
      await expectCounts({ allowed: 1, unchecked: 1 }, async () =>
        strictEqual(await place.exec('/opt/attack', ...argv), 'ran', place.output()),
      );
      await kernel.table.apply(policyOf('outcomes', 'protect', LISTED));
    });

    for (const [reason, argv] of [
      ['memfd', ['memfd', FORBIDDEN, 'usr/bin/allowed']],
      ['unlinked', ['unlinked', FORBIDDEN, '/tmp/gone']],
      ['foreign_mount', ['open-tree', '/usr/bin', 'allowed']],
      ['unresolved', ['moved-out', FORBIDDEN, '/mnt']],
    ] as const) {
      it(reason, async () => {
        await expectCounts({ allowed: 1, denied: 1, [reason]: 1 }, async () =>
          strictEqual(await place.exec('/opt/attack', ...argv), 'exit 66', place.output()),
        );
      });
    }

    it('too_long', async () => {
      const deep = ['pathlengths', 'run', ALLOWED, '-', 'deep', '5000'] as const;
      await expectCounts(
        { denied: 2, too_long: 2, violation_repeated: 1 },
        async () => await place.enter(...deep),
      );
    });

    it('escaped_cgroup and nested_cgroup', async () => {
      await expectCounts({ escaped_cgroup: 1, allowed: 1 }, async () =>
        strictEqual((await place.enterMounts('attack', 'plain', ALLOWED)).code, 0),
      );
      await expectCounts({ nested_cgroup: 1, allowed: 1 }, async () =>
        strictEqual((await place.enter('cgroups', 'nested', place.cgroup, '1', ALLOWED)).code, 0),
      );
      await rmdir(`${place.cgroup}/n`);
    });

    it('bootstrap', async () => {
      await expectCounts(
        { bootstrap: 1 },
        async () => await run(`${PROGRAMS}/cgroups`, ['into-vfork', place.cgroup, `${PROGRAMS}/marker`]),
      );
    });

    it('no_scratch: an LSM program that finds no room denies', async () => {
      if (kernel.enforcer.attachment.kind !== 'lsm') {
        // A tracing program owns its room: there is nothing to find.
        strictEqual(kernel.enforcer.attachment.kind, 'fmod_ret');
        return;
      }
      const before = kernel.enforcer.containerTotals(bound.slot.slot).violations;
      const roomless = attachWithoutRoom(kernel);
      try {
        await expectCounts({ denied: 1, no_scratch: 1 }, async () =>
          strictEqual(await place.exec(ALLOWED), 'EPERM'),
        );
      } finally {
        roomless.detach();
      }
      strictEqual(kernel.enforcer.containerTotals(bound.slot.slot).violations - before, 1n);
      strictEqual(await place.exec(ALLOWED), 'ran');
    });

    // One function sends the records of both attachments.
    const once = kind === attachments()[0] ? it : undefined;

    void once?.('field 77, 78: a full ring delays a record and never swallows it', async () => {
      const { from, to } = LONG_PATHS;
      const recorded = (): number =>
        new Set(kernel.events.map(({ path }) => Buffer.from(path).toString('latin1')).filter(isLong)).size;
      const expected = VARIANTS * (to - from + 1);
      const totals = kernel.enforcer.containerTotals(bound.slot.slot).violations;
      // The loop stands still meanwhile, so nobody reads the ring.
      const counted = await kernel.counted(() => {
        runLengths(place, from, to);
        return Promise.resolve();
      });
      const full = counted['violation_ring_full'] ?? 0;
      ok(full > 100, `the ring was full ${full} times`);
      reached.add('violation_ring_full');
      strictEqual(counted['denied'], expected);
      strictEqual(counted['violation_repeated'], undefined);
      strictEqual(kernel.enforcer.containerTotals(bound.slot.slot).violations - totals, BigInt(expected));
      await eventually(
        () => `${expected - full} records; there are ${recorded()}`,
        () => recorded() === expected - full || undefined,
      );
      // All come again, in portions: those that were recorded are repeats, and the others are recorded now.
      const again = await kernel.counted(async () => {
        for (let start = from; start <= to; start += PORTION) {
          const end = Math.min(start + PORTION - 1, to);
          await place.enter('pathlengths', 'run', ALLOWED, '-', 'lengths', String(start), String(end));
        }
      });
      await eventually(
        () => `${expected} records; there are ${recorded()}`,
        () => recorded() === expected || undefined,
      );
      strictEqual(again['violation_repeated'], expected - full);
      strictEqual(again['violation_ring_full'], undefined);
    });

    void once?.('learning_ring_full, which takes nothing from the violations', async () => {
      const slot = bindPlace(kernel, other, 0, true);
      // What the tables of 5.10 cannot hold is never proposed, so there shorter paths have to fill the ring.
      const { from, to } =
        kernel.enforcer.attachment.pathBytesMax < LONG_PATHS.to ? SHORTER_PATHS : LONG_PATHS;
      const counted = await kernel.counted(() => {
        runLengths(other, from, to);
        return Promise.resolve();
      });
      ok((counted['learning_ring_full'] ?? 0) > 0, JSON.stringify(counted));
      reached.add('learning_ring_full');
      strictEqual(counted['learned'], VARIANTS * (to - from + 1));
      await place.askAll([['+', FORBIDDEN, '/opt/unlisted']]);
      await expectCounts({ denied: 1 }, async () => await place.exec('/opt/unlisted'));
      await kernel.event({ text: '/opt/unlisted', kind: 'violation' });
      await kernel.slots.release(slot);
    });

    it('all of them but those that only a preempting or a newer kernel has', () => {
      const elsewhere = ['caught_by_copy', 'check_only', 'seen_full'];
      if (once === undefined) elsewhere.push('learning_ring_full', 'violation_ring_full');
      if (kernel.enforcer.attachment.kind !== 'lsm') elsewhere.push('no_scratch');
      deepStrictEqual(
        OUTCOME_NAMES.filter((name) => !reached.has(name) && !elsewhere.includes(name)),
        [],
      );
    });
  });
}
