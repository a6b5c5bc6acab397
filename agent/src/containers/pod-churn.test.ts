import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { expect, it } from 'vitest';
import { createGracePeriod } from '../kernel/grace-period.ts';
import { EXAMPLE_FACTS, exampleLog, openExampleMaps } from '../kernel/kernel-maps-example.ts';
import { loadNative } from '../kernel/native.ts';
import { createNodeSettings } from '../kernel/node-settings.ts';
import { createLearner } from '../learning/learner.ts';
import { fakeEvent, fakeKey, fakeReporting } from '../node/fake-kernel.ts';
import { createPeriodicReading } from '../node/periodic-reading.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import { entryCount, examplePolicy } from '../policies/policy-example.ts';
import { createPolicyTable } from '../policies/policy-table.ts';
import { createViolationJournal } from '../violations/violation-journal.ts';
import type { BoundContainer } from './bound-container.ts';
import { createContainerSlots } from './container-slots.ts';
import { createKernelBinder } from './kernel-binder.ts';

/** At a time; several times as many as a node has, and so many times over. */
const AT_A_TIME = 500;
/** Until every cache and bounded memory of ended containers is as full as it gets. */
const WARM_UP_ROUNDS = 10;
const ROUNDS = 40;
/** What may differ between two looks at a heap; one object kept of each container would be more. */
const HEAP_NOISE_BYTES = 1_500_000;
/** Half of them are bound to a policy, the others are learned. */
const WORKLOADS = 40;
const POD_TEMPLATE_HASH = '5d59d67564';
/** Longer than the journal keeps the records of ended containers. */
const BETWEEN_ROUNDS_MS = 20_000;

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

it(`field 80: ${ROUNDS * AT_A_TIME} containers that come and go leave nothing behind`, async () => {
  const native = loadNative();
  const opened = openExampleMaps(native);
  const root = mkdtempSync(join(tmpdir(), 'enforcer-churn-'));
  const learned = join(root, 'learned');
  mkdirSync(learned);
  // Every container has a cgroup of its own id; on disk they share one, with a process that is there.
  mkdirSync(join(root, 'cgroup'));
  writeFileSync(join(root, 'cgroup', 'cgroup.procs'), `${process.pid}\n`);
  let cgroups = 5_000n;
  let nowMs = 1_000_000;
  let lines = 0;
  const failures: string[] = [];
  const countFailure = (place: string): void => void failures.push(place);
  const { counters } = fakeReporting();
  const quiet = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
  };
  const errors = exampleLog();
  const log = { ...quiet, error: errors.log.error };
  const table = await createPolicyTable({ native, maps: opened.maps, log, countFailure });
  const slots = createContainerSlots({
    maps: opened.maps,
    grace: createGracePeriod(native),
    hostMountNamespace: EXAMPLE_FACTS.hostMountNamespace,
    countFailure,
  });
  const free = slots.free;
  const binder = createKernelBinder({
    native: { cgroupId: () => ++cgroups },
    tree: { root, subsystem: -1, hiddenLevelsMax: 0 },
    slots,
    settings: createNodeSettings(opened.maps.settings),
    table,
    learning: true,
    own: { podUid: undefined, namespace: undefined },
    log,
    countFailure,
  });
  const journal = createViolationJournal({
    ...{ nodeName: 'node-1', log, counters, now: () => nowMs, monotonicMs: () => nowMs },
    write: () => {
      lines++;
    },
  });
  const learner = createLearner({
    ...{ directory: learned, nodeName: 'node-1', log, counters, now: () => nowMs },
    isPromoted: () => false,
  });
  const reading = createPeriodicReading({
    containers: () => binder.containers(),
    total: () => 1n,
    seen: () => Promise.resolve([]),
    onContainer: (container, total, seen) => {
      journal.counts(container, total, seen);
      learner.counts(seen);
    },
    onRead: (presentIds) => {
      journal.counted(presentIds);
      learner.counted(presentIds);
    },
    onFailure: () => countFailure('reading'),
    log,
  });

  const pod = (id: string, number: number): NriPodSandbox => {
    const isBound = number % 2 === 0;
    return {
      ...{
        id: `sandbox-${id}`,
        name: `app${number % WORKLOADS}-${POD_TEMPLATE_HASH}-x2k8p`,
        uid: `uid-${id}`,
        pid: 0,
      },
      ...{ namespace: 'shop', annotations: new Map(), cgroupParent: '', runtimeHandler: '' },
      labels: new Map([
        ['pod-template-hash', POD_TEMPLATE_HASH],
        ...(isBound ? [[POLICY_LABEL, 'web'] as const] : []),
      ]),
    };
  };
  const container = (id: string): NriContainer => ({
    ...{ id, podSandboxId: `sandbox-${id}`, name: 'app', state: 'created', pid: process.pid, args: [] },
    ...{ labels: new Map(), annotations: new Map(), cgroupsPath: '/cgroup', image: 'shop/web:1' },
  });
  const happens = (bound: BoundContainer): void => {
    const path = Buffer.from(`/usr/bin/tool-${bound.containerId.length % 3}`);
    const key = fakeKey(`${bound.slot}.${bound.generation}`);
    if (bound.state === 'enforced') journal.events([fakeEvent(bound, { key, path })]);
    else
      learner.events([fakeEvent(bound, { kind: 'learned', key, path, mode: undefined, reason: undefined })]);
  };
  const round = async (number: number): Promise<void> => {
    const ids = Array.from({ length: AT_A_TIME }, (_, i) => `${number}-${i}`);
    const results = await Promise.all(ids.map((id, i) => binder.bind(pod(id, i), container(id))));
    for (const { container: bound } of results) happens(bound);
    await reading.read();
    for (const { container: bound } of results) reading.leave(bound);
    await Promise.all(ids.map((id) => binder.unbind(id)));
    nowMs += BETWEEN_ROUNDS_MS;
    await reading.read();
    nowMs += BETWEEN_ROUNDS_MS;
    await reading.read();
  };

  try {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    await learner.start();
    for (let number = 0; number < WARM_UP_ROUNDS; number++) await round(number);
    const before = heapBytes();
    for (let number = WARM_UP_ROUNDS; number < ROUNDS; number++) await round(number);
    const grown = heapBytes() - before;

    expect(failures).toEqual([]);
    expect(errors.lines).toEqual([]);
    // Half of them broke their policy, the others were learned: both were at work.
    expect(lines).toBeGreaterThanOrEqual((ROUNDS * AT_A_TIME) / 2);
    expect([...binder.containers()]).toEqual([]);
    expect(slots.free).toBe(free);
    expect((await opened.maps.cgroups.entries()).count).toBe(0);
    expect((await opened.maps.mountNamespaces.entries()).count).toBe(0);
    expect(grown).toBeLessThan(HEAP_NOISE_BYTES);

    await learner.stop();
    expect(readdirSync(join(learned, 'shop'))).toHaveLength(WORKLOADS / 2);
    await table.remove('shop/web');
    await table.settled();
    expect(await entryCount(opened.maps)).toBe(0);
    expect([...table.states()]).toEqual([]);
  } finally {
    await learner.stop();
    await reading.stop();
    opened.close();
    rmSync(root, { recursive: true });
  }
}, 120_000);
