import type { Logger } from '../nri/handlers.ts';
import { createBootClock } from './boot-clock.ts';
import type { EnforcerAttachment, KernelEnforcer } from './enforcer.ts';
import { decodeExecEvents } from './exec-record.ts';
import type { CountFailure } from './failures.ts';
import { CONTAINER_COUNTERS_LAYOUT } from './gen/abi.ts';
import type { KernelMaps } from './maps.ts';
import { isNativeError, type Native, type RingReading } from './native.ts';
import { createNodeSettings } from './node-settings.ts';
import { readOutcomes } from './outcomes.ts';
import { listPins, removeAllPins, type PinDirectory } from './pins.ts';
import { createSeenReading } from './seen-reading.ts';

/** Most records that are handed over at once; what comes meanwhile waits in the kernel's ring. */
const EVENTS_PER_BATCH_MAX = 512;

export interface RunningEnforcerParts {
  readonly native: Native;
  readonly log: Logger;
  readonly countFailure: CountFailure;
  readonly attachment: EnforcerAttachment;
  readonly maps: KernelMaps;
  readonly pins: PinDirectory;
  readonly pinRoot: string;
  /** Set where new maps have yet to take effect. */
  readonly commit: (() => Promise<void>) | undefined;
  readonly close: () => void;
}

/** The enforcer over maps that are open and, unless `commit` is set, already decide. */
export function createRunningEnforcer(parts: RunningEnforcerParts): KernelEnforcer {
  const { native, log, countFailure, attachment, maps, pins } = parts;
  const clock = createBootClock();
  const settings = createNodeSettings(maps.settings);
  let { commit } = parts;
  let programIds = commit === undefined ? programsOf(native, pins, attachment) : [];
  let misses = 0n;
  let reading: RingReading | undefined;

  return {
    attachment,
    maps,
    settings,
    outcomes: () => readOutcomes(maps.outcomes),
    recursionMisses() {
      misses = recursionMisses(native, programIds) ?? misses;
      return misses;
    },
    containerTotals(slot) {
      const key = new Uint8Array(4);
      new DataView(key.buffer).setUint32(0, slot, true);
      const value = maps.containerCounters.lookup(key);
      if (value === undefined) return { violations: 0n, learned: 0n };
      const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
      const { violations, learned } = CONTAINER_COUNTERS_LAYOUT.offsets;
      return { violations: view.getBigUint64(violations, true), learned: view.getBigUint64(learned, true) };
    },
    seen: createSeenReading(maps.seen, clock),
    startEvents(lookup, onBatch) {
      if (reading !== undefined) throw new Error('the records are read already');
      reading = native.startRings(
        [maps.violationEvents, maps.learningEvents],
        (_ring, batch) => {
          try {
            onBatch(decodeExecEvents(batch, clock, lookup, () => countFailure('event_undecodable')));
          } catch (error) {
            countFailure('event_handler');
            log.error({ err: error }, 'a batch of exec records could not be handled');
          }
        },
        { maxBatch: EVENTS_PER_BATCH_MAX },
      );
    },
    async attached() {
      const links = (await listPins(pins))?.links ?? [];
      return attachment.programs.every((name) => links.includes(name));
    },
    override: () => settings.override(),
    setOverride: (override) => settings.setOverride(override),
    get pending() {
      return commit !== undefined;
    },
    async commit() {
      if (commit === undefined) return;
      await commit();
      commit = undefined;
      programIds = programsOf(native, pins, attachment);
      log.info({ pins: pins.path }, 'the new program and maps decide now; the old ones are gone');
    },
    async stop({ release }) {
      await reading?.stop();
      if (release) await removeAllPins(parts.pinRoot);
      parts.close();
    },
  };
}

function programsOf(native: Native, pins: PinDirectory, { programs }: EnforcerAttachment): number[] {
  return programs.map((name) => {
    const link = native.openPinnedLink(pins.link(name));
    try {
      return link.programId;
    } finally {
      link.close();
    }
  });
}

/** Undefined where a program is gone: somebody released the node. */
function recursionMisses(native: Native, programIds: readonly number[]): bigint | undefined {
  try {
    return programIds.reduce((sum, id) => sum + native.programById(id).info().recursionMisses, 0n);
  } catch (error) {
    if (isNativeError(error) && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
