import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import { builtFiles } from '@runtime-enforcer/agent/built-files';
import type { RunOptions } from '@runtime-enforcer/agent/commands/run-options';
import { openCgroupTree } from '@runtime-enforcer/agent/containers/cgroup-tree';
import { createContainerSlots } from '@runtime-enforcer/agent/containers/container-slots';
import { createKernelBinder } from '@runtime-enforcer/agent/containers/kernel-binder';
import { kernelReadings } from '@runtime-enforcer/agent/containers/kernel-bindings';
import { readMountNamespace } from '@runtime-enforcer/agent/containers/running-programs';
import { createBootClock } from '@runtime-enforcer/agent/kernel/boot-clock';
import { decodeExecEvents } from '@runtime-enforcer/agent/kernel/exec-record';
import type { CountFailure } from '@runtime-enforcer/agent/kernel/failures';
import { ABI_VERSION } from '@runtime-enforcer/agent/kernel/gen/abi';
import { createGracePeriod } from '@runtime-enforcer/agent/kernel/grace-period';
import { DEFAULT_CAPACITY, planLoad } from '@runtime-enforcer/agent/kernel/load-plan';
import { kernelMaps, sharedMaps } from '@runtime-enforcer/agent/kernel/maps';
import { loadNative, type Native } from '@runtime-enforcer/agent/kernel/native';
import { acquireOwnership } from '@runtime-enforcer/agent/kernel/owner-lock';
import { createNodeSettings } from '@runtime-enforcer/agent/kernel/node-settings';
import { pinDirectory } from '@runtime-enforcer/agent/kernel/pins';
import { createRunningEnforcer } from '@runtime-enforcer/agent/kernel/running-enforcer';
import type { Logger } from '@runtime-enforcer/agent/nri/handlers';
import { createPolicyTable } from '@runtime-enforcer/agent/policies/policy-table';
import type { FitNode, OpenKernelSide } from '@runtime-enforcer/agent/node/kernel-side';
import { replayRecords } from './record-replay.ts';

/** Records per second that the kernel is to tell; none when it is not set. */
export const EVENTS_VARIABLE = 'RUNTIME_ENFORCER_BENCH_EVENTS';
/** Where nothing is pinned. */
const PIN_ROOT = '/run/runtime-enforcer-bench-no-pins';

interface KernelSideParts {
  readonly options: RunOptions;
  readonly log: Logger;
  readonly failures: (place: string) => void;
}

/**
 * Stands in for the agent's own `findNodeFit` on a machine whose kernel lets no program attach: all maps are real and
 * filled by the agent's own code, no program reads them, and records are replayed instead of read from a ring. Each
 * agent of a bench owns a node of its own.
 */
export function findNodeFit(parts: KernelSideParts): FitNode {
  const native = loadNative(builtFiles().addon);
  const lockPath = join(parts.options.stateDirectory, 'owner.lock');
  return {
    lockPath,
    own: (wait) => acquireOwnership(native, lockPath, wait),
    ownNow: () => acquireOwnership(native, lockPath),
    open: () => open(native, parts),
  };
}

async function open(native: Native, { options, log, failures }: KernelSideParts): Promise<OpenKernelSide> {
  const countFailure: CountFailure = failures;
  const { enforcerObject } = builtFiles();
  const tree = await openCgroupTree(native);
  const hostMountNamespace = await readMountNamespace(process.pid);
  const facts = { hostMountNamespace, cgroupSubsystem: tree.subsystem, largeKeys: true, typedCast: true };
  const plan = planLoad(facts, [], options.capacity ?? DEFAULT_CAPACITY);
  // As when the program is loaded, the object's bytes are in memory once.
  await readFile(enforcerObject);
  const object = native.load(enforcerObject, {
    programs: [],
    maxEntries: plan.maxEntries,
    keySizes: plan.keySizes,
  });
  const maps = kernelMaps(sharedMaps(object), plan);
  createNodeSettings(maps.settings).reset();
  const running = createRunningEnforcer({
    ...{ native, log, countFailure, maps },
    attachment: {
      programs: [],
      kind: 'lsm',
      reason: 'nothing is attached: this is a bench',
      kernel: release(),
      pathBytesMax: plan.pathBytesMax,
      adopted: 'fresh',
    },
    pins: pinDirectory(PIN_ROOT, ABI_VERSION),
    pinRoot: PIN_ROOT,
    commit: undefined,
    close: () => object.close(),
  });
  const table = await createPolicyTable({ native, maps, log, countFailure });
  const grace = createGracePeriod(native);
  const binder = createKernelBinder({
    ...{ native, tree, table, log, countFailure },
    slots: createContainerSlots({ maps, grace, hostMountNamespace, countFailure }),
    settings: running.settings,
    learning: options.learnDirectory !== undefined || options.cluster?.learningSelector !== undefined,
    own: { podUid: undefined, namespace: undefined },
  });
  const eventsPerSecond = Number(process.env[EVENTS_VARIABLE] ?? '0');
  let stopReplay = (): void => undefined;
  return {
    enforcer: {
      ...running,
      startEvents(lookup, onBatch) {
        running.startEvents(lookup, onBatch);
        if (eventsPerSecond === 0) return;
        const clock = createBootClock();
        stopReplay = replayRecords({
          perSecond: eventsPerSecond,
          slots: () => [...binder.containers()].filter(({ slot }) => slot > 0),
          kindsMax: maps.seen.maxEntries,
          mark: ({ keys, values, count }) => void maps.seen.updateMany(keys, values, count),
          deliver: (batch) =>
            onBatch(decodeExecEvents(batch, clock, lookup, () => countFailure('event_undecodable'))),
        });
      },
    },
    table,
    binder,
    readings: kernelReadings(native, tree, maps, hostMountNamespace),
    async close() {
      stopReplay();
      await table.settled();
      await running.stop({ release: false });
    },
  };
}
