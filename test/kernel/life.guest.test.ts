import { deepStrictEqual, match, ok, rejects, strictEqual } from 'node:assert/strict';
import { execFile, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rename } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { ABI_VERSION } from '@runtime-enforcer/agent/kernel/gen/abi';
import type { NativeObject } from '@runtime-enforcer/agent/kernel/native';
import { OBJECTS, PROGRAMS } from './guest-files.ts';
import { eventually } from '../runtime/eventually.ts';
import { native, openKernel, probe, type Kernel } from './kernel.ts';
import { enforce, LISTED, makePlace, policyOf, type Place } from './bound-place.ts';
import { STORM_MIN, startStorm, type StormResult } from './storm.ts';

const run = promisify(execFile);
const PIN_ROOT = '/sys/fs/bpf/life';
const STORM_S = 12;
/** Exit code of the guest programs when an exec was denied. */
const DENIED = 66;
/** More than any kernel has places for programs at one hook. */
const PLACES_MAX = 200;

const storm = async (place: Place): Promise<StormResult> =>
  await startStorm(place, STORM_S, '/usr/bin/forbidden', '/usr/bin/allowed');

function expectNothingPassed(counts: StormResult): void {
  const [forbidden, allowed] = [counts.of('/usr/bin/forbidden'), counts.of('/usr/bin/allowed')];
  strictEqual(forbidden.ran, 0);
  strictEqual(allowed.denied, 0);
  ok(forbidden.denied >= STORM_MIN && allowed.ran >= STORM_MIN, JSON.stringify({ forbidden, allowed }));
}

// The owner of the pins that is killed is this very file in another process: it opens the kernel and says so.
const isOwner = process.argv.includes('owner');
if (isOwner) {
  await openKernel(undefined, { pinRoot: PIN_ROOT });
  process.send?.('open');
  setInterval(() => undefined, 1_000);
}

describe('enforcement outlives its agent', { skip: isOwner ? 'the owner runs no tests' : false }, () => {
  let kernel: Kernel;
  let place: Place;
  let attempts = 0;

  before(async () => {
    await run('modprobe', ['overlay']);
    kernel = await openKernel(undefined, { pinRoot: PIN_ROOT });
    place = await makePlace(kernel, 'life');
    await enforce(kernel, place, policyOf('life', 'protect', LISTED));
  });
  after(async () => {
    await place.close();
    await kernel.stop();
  });

  /** Tries at this very moment, while nothing else of this process can go on. */
  const deniedNow = (): void => {
    const env = { ENTER_CGROUP: place.cgroup, ENTER_PID: String(place.pid) };
    const { status, stdout } = spawnSync(`${PROGRAMS}/attack`, ['plain', '/usr/bin/forbidden'], { env });
    strictEqual(status, DENIED, stdout.toString());
    attempts++;
  };

  it('keeps denying when its agent stops and keeps the pins, and the next one adopts them', async () => {
    await kernel.stop({ release: false });
    strictEqual(await place.exec('/usr/bin/forbidden'), 'EPERM');
    strictEqual(await place.exec('/usr/bin/allowed'), 'ran');
    kernel = await openKernel(undefined, { pinRoot: PIN_ROOT });
    strictEqual(kernel.enforcer.attachment.adopted, 'adopted');
    const counted = await kernel.counted(async () => await place.exec('/usr/bin/forbidden'));
    strictEqual(counted['denied'], 1);
  });

  it('passes nothing while the owner is killed under a storm', async () => {
    await kernel.stop({ release: false });
    const owner = fork(process.argv[1] ?? '', ['owner']);
    const running = storm(place);
    await once(owner, 'message');
    owner.kill('SIGKILL');
    await once(owner, 'exit');
    kernel = await openKernel(undefined, { pinRoot: PIN_ROOT });
    expectNothingPassed(await running);
  });

  it('passes nothing while another build takes its place on the same maps', async () => {
    const running = storm(place);
    for (let i = 0; i < 3; i++) {
      await kernel.stop({ release: false });
      const objectPath = i % 2 === 0 ? OBJECTS.rebuilt : OBJECTS.enforcer;
      kernel = await openKernel(undefined, { pinRoot: PIN_ROOT, objectPath, onAttach: deniedNow });
      strictEqual(kernel.enforcer.attachment.adopted, 'replaced');
    }
    expectNothingPassed(await running);
  });

  it('passes nothing while a program with another map layout takes its place', async () => {
    const running = storm(place);
    await kernel.stop({ release: false });
    // The same code, but nothing of what is pinned fits: as after an upgrade with another ABI.
    kernel = await openKernel(undefined, { pinRoot: PIN_ROOT, capacity: 131_072, onAttach: deniedNow });
    ok(kernel.enforcer.pending, 'the new maps decided at once');
    await enforce(kernel, place, policyOf('life', 'protect', LISTED));
    await kernel.enforcer.commit();
    strictEqual(await place.exec('/usr/bin/forbidden'), 'EPERM');
    expectNothingPassed(await running);
  });

  it('passes nothing while a program of another ABI is replaced', async () => {
    await kernel.stop({ release: true });
    kernel = await openKernel(undefined, { pinRoot: PIN_ROOT, objectPath: OBJECTS.otherAbi });
    await enforce(kernel, place, policyOf('life', 'protect', LISTED));
    await kernel.stop({ release: false });
    // For the next one, what is there is of an ABI that it does not know.
    await rename(`${PIN_ROOT}/abi-${ABI_VERSION}`, `${PIN_ROOT}/abi-1000`);
    const running = storm(place);
    kernel = await openKernel(undefined, { pinRoot: PIN_ROOT, onAttach: deniedNow });
    ok(kernel.enforcer.pending, 'maps of another ABI were taken over');
    await enforce(kernel, place, policyOf('life', 'protect', LISTED));
    strictEqual((await kernel.enforcer.outcomes())['denied'], 0n);
    attempts = 0;
    await kernel.enforcer.commit();
    ok(attempts >= 2, 'nothing was tried while the programs changed');
    deepStrictEqual(await readdir(PIN_ROOT), [`abi-${ABI_VERSION}`]);
    expectNothingPassed(await running);
    const counted = await kernel.counted(async () => {
      strictEqual(await place.exec('/usr/bin/forbidden'), 'EPERM');
    });
    strictEqual(counted['denied'], 1, JSON.stringify(counted));
  });

  it('releases everything when told to', async () => {
    await kernel.stop({ release: true });
    // The kernel takes a program off its hook a moment after the last pin is gone.
    const passes = async (): Promise<true | undefined> =>
      (await place.exec('/usr/bin/forbidden')) === 'ran' ? true : undefined;
    await eventually(() => 'the released program still denies', passes);
    deepStrictEqual(await readdir('/sys/fs/bpf').then((names) => names.includes('life')), false);
    kernel = await openKernel(undefined, { pinRoot: PIN_ROOT });
    strictEqual(kernel.enforcer.attachment.adopted, 'fresh');
  });

  it('field 68: says so where other tools hold every place at the hook, and does not claim to enforce', async () => {
    await kernel.stop({ release: true });
    const others = (['probe_lsm', 'probe_fmod_ret'] as const).flatMap(takeEveryPlace);
    try {
      const { attachment, usable } = probe();
      strictEqual(usable, false);
      match('problem' in attachment ? attachment.problem : '', /other tools have taken all places/);
      await rejects(openKernel(undefined, { pinRoot: PIN_ROOT }), /other tools have taken all places/);
    } finally {
      for (const other of others) other.close();
    }
    kernel = await openKernel(undefined, { pinRoot: PIN_ROOT });
    strictEqual(kernel.enforcer.attachment.adopted, 'fresh');
  });
});

/** Attaches the smallest program again and again until the kernel takes no more, and at least once. */
function takeEveryPlace(program: string): { close(): void }[] {
  const taken: { close(): void }[] = [];
  for (let i = 0; i < PLACES_MAX; i++) {
    let object: NativeObject | undefined;
    try {
      object = native.load(OBJECTS.probe, { programs: [program] });
      const link = object.programs.get(program)?.attach();
      if (link !== undefined) taken.push(link);
    } catch {
      return taken;
    } finally {
      object?.close();
    }
  }
  throw new Error(`${PLACES_MAX} programs are attached, and the kernel takes more`);
}
