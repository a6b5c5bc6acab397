import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, rmdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { SlotContent } from '@runtime-enforcer/agent/containers/container-slots';
import { enforce, LISTED, makePlace, policyOf, type Place } from './bound-place.ts';
import { PROGRAMS } from './guest-files.ts';
import { openKernel, type Kernel } from './kernel.ts';

const run = promisify(execFile);
const ALLOWED = '/usr/bin/allowed';
const FORBIDDEN = '/usr/bin/forbidden';
const FILLED = 5_000;
/** On each of the ring's kernels; a hundred thousand take minutes on an emulated machine. */
const CHURNED = 10_000;

describe('cgroups', () => {
  let kernel: Kernel;
  let place: Place;

  before(async () => {
    kernel = await openKernel();
    place = await makePlace(kernel, 'cgroups');
    await enforce(kernel, place, policyOf('cgroups', 'protect', LISTED));
  });
  after(async () => {
    await place.close();
    await kernel.stop();
  });

  it(`field 28: ${FILLED} made by a tenant change nothing`, async () => {
    const { stdout } = await run(`${PROGRAMS}/cgroups`, ['fill', place.cgroup, String(FILLED)]);
    deepStrictEqual(JSON.parse(stdout), { made: FILLED });
    for (const last of [0, FILLED - 1]) {
      const child = `${place.cgroup}/filled-${last}`;
      const counted = await kernel.counted(async () => {
        strictEqual((await place.enter('cgroups', 'join', child, FORBIDDEN)).code, 66);
        strictEqual((await place.enter('cgroups', 'into', child, FORBIDDEN)).code, 66);
        strictEqual((await place.enter('cgroups', 'into', child, ALLOWED)).code, 0);
      });
      strictEqual(counted['nested_cgroup'], 3, JSON.stringify(counted));
    }
    await run(`${PROGRAMS}/cgroups`, ['clear', place.cgroup]);
  });

  it('field 29: a child that starts in a cgroup beside the container is denied', async () => {
    const beside = `${kernel.tree.root}/k/beside`;
    await mkdir(beside);
    const counted = await kernel.counted(async () => {
      strictEqual((await place.enter('cgroups', 'into', beside, FORBIDDEN)).code, 66);
      strictEqual((await place.enter('cgroups', 'into', beside, ALLOWED)).code, 0);
      strictEqual((await place.enter('cgroups', 'join', beside, FORBIDDEN)).code, 66);
    });
    strictEqual(counted['escaped_cgroup'], 3, JSON.stringify(counted));
    await rmdir(beside);
  });

  it('above the levels of containers are not looked at', async () => {
    const shallow = `${kernel.tree.root}/k`;
    const counted = await kernel.counted(
      async () => await run(`${PROGRAMS}/cgroups`, ['join', shallow, `${PROGRAMS}/tiny`]),
    );
    ok((counted['untracked'] ?? 0) >= 1);
    strictEqual(counted['denied'], undefined);
  });

  it('whose likely place is taken by another are found all the same', async () => {
    const capacity = BigInt(kernel.enforcer.maps.containers.maxEntries);
    const second = await makePlace(kernel, 'collision');
    const taker = kernel.bind(
      { ...unbound(second), cgroupId: second.cgroupId + capacity, mountNamespace: 0 },
      second.level,
    );
    const bound = await enforce(kernel, second, policyOf('collision', 'protect', [ALLOWED]));
    ok(bound.slot.slot !== taker.slot, 'the place was not taken');
    deepStrictEqual(await second.askAll([[ALLOWED], [FORBIDDEN]]), ['ran', 'EPERM']);
    await bound.unbind();
    await kernel.slots.release(taker);
    strictEqual(await second.exec(FORBIDDEN), 'ran');
    await second.close();
  });

  it(`field 22, 23: ${CHURNED} made and removed never have an id again that was bound`, async () => {
    const gone = await makePlace(kernel, 'gone');
    const slot = kernel.bind({ ...unbound(gone), mountNamespace: 0, learn: true }, gone.level);
    await gone.close();
    const { stdout } = await run(`${PROGRAMS}/cgroups`, [
      ...['churn', `${kernel.tree.root}/k/pod`, String(CHURNED)],
    ]);
    deepStrictEqual(JSON.parse(stdout), { made: CHURNED, repeated: 0, falling: 0 });
    const again = await makePlace(kernel, 'gone');
    ok(again.cgroupId > slot.cgroupId);
    const counted = await kernel.counted(async () => strictEqual(await again.exec(FORBIDDEN), 'ran'));
    strictEqual(counted['learned'], undefined);
    await kernel.slots.release(slot);
    await again.close();
    deepStrictEqual(await place.askAll([[FORBIDDEN], [ALLOWED]]), ['EPERM', 'ran']);
  });

  // The kernel hands out the lowest free number of a namespace; the agent releases what it knows to have ended.
  it('field 23: known gap: a binding left behind holds for who gets the number of its mount namespace', async () => {
    const gone = await makePlace(kernel, 'gone');
    const slot = kernel.bind({ ...unbound(gone), learn: true }, gone.level);
    await gone.close();
    const again = await makePlace(kernel, 'gone');
    strictEqual(again.mountNamespace, gone.mountNamespace);
    const counted = await kernel.counted(async () => await again.exec(FORBIDDEN));
    strictEqual(counted['learned'], 1);
    await kernel.slots.release(slot);
    const released = await kernel.counted(async () => await again.exec(FORBIDDEN));
    strictEqual(released['learned'], undefined);
    await again.close();
  });
});

function unbound({ cgroupId, mountNamespace, pid }: Place): SlotContent {
  return { cgroupId, mountNamespace, policyId: 0, learn: false, initPid: pid };
}
