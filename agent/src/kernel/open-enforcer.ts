import { createHash } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import type { Logger } from '../nri/handlers.ts';
import type { Attachment } from './attachment.ts';
import type { EnforcerAttachment, KernelEnforcer } from './enforcer.ts';
import type { CountFailure } from './failures.ts';
import { ABI_VERSION } from './gen/abi.ts';
import { DEFAULT_CAPACITY, planLoad, randomHashSeed, type LoadFacts, type LoadPlan } from './load-plan.ts';
import { isSameDefinition, kernelMaps, sharedMaps } from './maps.ts';
import { isNativeError, type Native, type NativeMap, type NativeObject } from './native.ts';
import { createNodeSettings } from './node-settings.ts';
import {
  DEFAULT_PIN_ROOT,
  listPins,
  pinDirectory,
  pinnedAbis,
  promoteNext,
  removePins,
  type PinDirectory,
} from './pins.ts';
import { replaceLinks } from './program-links.ts';
import { createRunningEnforcer } from './running-enforcer.ts';
import { forgetLearned } from './seen-reading.ts';

export interface OpenOptions {
  readonly native: Native;
  readonly log: Logger;
  readonly countFailure: CountFailure;
  /** The compiled kernel program. */
  readonly objectPath: string;
  readonly facts: LoadFacts;
  readonly attachment: Attachment;
  /** uname -r: a program fits the kernel that it was loaded for. */
  readonly kernelRelease: string;
  /** Paths of up to 28 bytes; longer ones have smaller tables. */
  readonly capacity?: number;
  readonly pinRoot?: string;
}

/** What decides on this node once it is open, and from which maps. */
interface Opened {
  readonly maps: ReadonlyMap<string, NativeMap>;
  readonly object: NativeObject | undefined;
  readonly adopted: EnforcerAttachment['adopted'];
  readonly commit: (() => Promise<void>) | undefined;
}

/**
 * Takes over what is pinned on this node, or puts the program there for the first time. To be called by the owner
 * of the node only (owner-lock.ts).
 *
 * - Maps of this ABI and these capacities are kept with all they hold, and the links too if they are of this build;
 *   otherwise the new program is loaded over the same maps and takes the place of the old one without a gap.
 * - Anything else that decides is left alone until `commit()`: the caller fills new maps first.
 *
 * Rejects with a NativeError or an Error that tells the operation; what decided before then still does. Where the
 * kernel's verifier rejected the program, the log has its reasons.
 */
export async function openEnforcer(options: OpenOptions): Promise<KernelEnforcer> {
  const { native, log, attachment, pinRoot = DEFAULT_PIN_ROOT } = options;
  const plan = planLoad(options.facts, attachment.programs, options.capacity ?? DEFAULT_CAPACITY);
  const build = buildDigest(await readFile(options.objectPath), plan, options.kernelRelease);
  await mkdir(pinRoot, { recursive: true, mode: 0o700 });
  await finishInterrupted(pinRoot);

  const live = pinDirectory(pinRoot, ABI_VERSION);
  const opened =
    (await openOverPinnedMaps(options, plan, live, build)) ??
    (await openWithNewMaps(options, plan, live, build));
  const maps = kernelMaps(opened.maps, plan);
  // What the agent before was told and had not written yet is told again; its violations were counted exactly.
  await forgetLearned(maps.seen);
  const described = describeAttachment(options, plan, opened.adopted);
  if (opened.adopted !== 'adopted' && opened.commit !== undefined) {
    log.info(
      { pinRoot },
      'what decides on this node stays until policies and containers are in the new maps',
    );
  }
  log[described.degraded === undefined ? 'info' : 'warn'](
    { ...described },
    `checking execs by ${described.kind}: ${described.degraded ?? described.reason}`,
  );
  return createRunningEnforcer({
    native,
    log,
    countFailure: options.countFailure,
    attachment: described,
    maps,
    pins: live,
    pinRoot,
    commit: opened.commit,
    close: () => {
      for (const map of opened.maps.values()) map.close();
      opened.object?.close();
    },
  });
}

/** Undefined where there are no maps of this ABI that the program could use. */
async function openOverPinnedMaps(
  options: OpenOptions,
  plan: LoadPlan,
  live: PinDirectory,
  build: string,
): Promise<Opened | undefined> {
  const pins = await listPins(live);
  if (pins === undefined) return undefined;
  const pinned = openMatchingMaps(options, plan, live, pins.maps);
  if (pinned === undefined) return undefined;
  try {
    const isWhole = plan.programs.every((name) => pins.links.includes(name));
    if (pins.build === build && isWhole && pins.links.length === plan.programs.length) {
      await removeOthers(options, live);
      return { maps: pinned, object: undefined, adopted: 'adopted', commit: undefined };
    }
    const object = load(options, plan, pinned);
    try {
      await replaceLinks(live, object, plan.programs, build);
    } catch (error) {
      object.close();
      throw error;
    }
    await removeOthers(options, live);
    return { maps: pinned, object, adopted: 'replaced', commit: undefined };
  } catch (error) {
    for (const map of pinned.values()) map.close();
    throw error;
  }
}

async function openWithNewMaps(
  options: OpenOptions,
  plan: LoadPlan,
  live: PinDirectory,
  build: string,
): Promise<Opened> {
  const { pinRoot = DEFAULT_PIN_ROOT } = options;
  const object = load(options, plan);
  const maps = sharedMaps(object);
  const commit = async (): Promise<void> => {
    const next = pinDirectory(pinRoot, ABI_VERSION, 'next');
    await mkdir(next.path, { mode: 0o700 });
    try {
      for (const [name, map] of maps) map.pin(next.map(name));
      await replaceLinks(next, object, plan.programs, build);
    } catch (error) {
      await removePins(next.path);
      throw error;
    }
    await promoteNext(pinRoot, ABI_VERSION);
  };
  try {
    createNodeSettings(kernelMaps(maps, plan).settings).reset();
    const replaces = await somethingDecides(pinRoot, live);
    if (!replaces) await commit();
    return {
      maps,
      object,
      adopted: replaces ? 'replaced' : 'fresh',
      commit: replaces ? commit : undefined,
    };
  } catch (error) {
    object.close();
    throw error;
  }
}

function load(
  { native, log, objectPath, kernelRelease }: OpenOptions,
  plan: LoadPlan,
  reuse?: ReadonlyMap<string, NativeMap>,
): NativeObject {
  try {
    return native.load(objectPath, {
      programs: plan.programs,
      constants: { ...plan.constants, hash_seed: randomHashSeed() },
      maxEntries: plan.maxEntries,
      keySizes: plan.keySizes,
      reuseMaps: Object.fromEntries(reuse ?? []),
    });
  } catch (error) {
    if (isNativeError(error) && error.verifierLog !== undefined) {
      log.error(
        { kernel: kernelRelease, programs: plan.programs, verifierLog: error.verifierLog },
        "the kernel's verifier rejected the program; report this with the log and the kernel's version",
      );
    }
    throw error;
  }
}

/** The pinned maps, if they are all there and as this object would make them. */
function openMatchingMaps(
  options: OpenOptions,
  plan: LoadPlan,
  live: PinDirectory,
  names: readonly string[],
): Map<string, NativeMap> | undefined {
  const { native, log } = options;
  const made = native.load(options.objectPath, {
    programs: [],
    maxEntries: plan.maxEntries,
    keySizes: plan.keySizes,
  });
  const opened = new Map<string, NativeMap>();
  let why: string | undefined;
  try {
    for (const [name, map] of sharedMaps(made)) {
      const pinned = names.includes(name) ? native.openPinnedMap(live.map(name)) : undefined;
      if (pinned !== undefined) opened.set(name, pinned);
      if (pinned === undefined || !isSameDefinition(pinned, map)) {
        why ??= pinned === undefined ? `map ${name} is missing` : `map ${name} has another size or type`;
      }
    }
  } catch (error) {
    for (const map of opened.values()) map.close();
    throw error;
  } finally {
    made.close();
  }
  if (why === undefined) return opened;
  for (const map of opened.values()) map.close();
  log.info({ pins: live.path, why }, 'the pinned maps cannot be kept; new ones will replace them');
  return undefined;
}

/** An agent that was killed while it replaced: what it had completed takes effect, what it had not goes. */
async function finishInterrupted(pinRoot: string): Promise<void> {
  const next = pinDirectory(pinRoot, ABI_VERSION, 'next');
  const pins = await listPins(next);
  if (pins === undefined) return;
  if (pins.build === undefined) await removePins(next.path);
  else await promoteNext(pinRoot, ABI_VERSION);
}

async function somethingDecides(pinRoot: string, live: PinDirectory): Promise<boolean> {
  const others = (await pinnedAbis(pinRoot)).filter((abi) => abi !== live.abi);
  return others.length > 0 || ((await listPins(live))?.links.length ?? 0) > 0;
}

async function removeOthers({ pinRoot = DEFAULT_PIN_ROOT }: OpenOptions, live: PinDirectory): Promise<void> {
  for (const abi of await pinnedAbis(pinRoot)) {
    if (abi !== live.abi) await removePins(pinDirectory(pinRoot, abi).path);
  }
}

/** Equal for programs that are the same on this kernel, whatever the seed. */
function buildDigest(object: Uint8Array, plan: LoadPlan, kernelRelease: string): string {
  const { programs, constants } = plan;
  return createHash('sha256')
    .update(object)
    .update(JSON.stringify([programs, constants, kernelRelease]))
    .digest('hex')
    .slice(0, 32);
}

function describeAttachment(
  { attachment, kernelRelease }: OpenOptions,
  plan: LoadPlan,
  adopted: EnforcerAttachment['adopted'],
): EnforcerAttachment {
  const { kind, programs, reason, degraded } = attachment;
  return {
    programs,
    kind: kind === 'fmod_ret' && programs.length > 1 ? 'fmod_ret+copies' : kind,
    reason,
    ...(degraded !== undefined && { degraded }),
    kernel: kernelRelease,
    pathBytesMax: plan.pathBytesMax,
    adopted,
  };
}
