import { setTimeout as delay } from 'node:timers/promises';
import type { Override } from './enforcer.ts';
import { ABI_VERSION } from './gen/abi.ts';
import type { Native } from './native.ts';
import { createNodeSettings } from './node-settings.ts';
import { DEFAULT_PIN_ROOT, listPins, pinDirectory, pinnedAbis, removeAllPins } from './pins.ts';

/** How long a running agent needs at most between reading and writing the settings. */
const AGENT_WRITE_MS = 50;
const WRITES_MAX = 20;

/**
 * Takes everything of the product off this node, whatever its ABI and whether or not an agent runs: nothing is
 * checked any more. Returns the names of the directories that were removed; none: there was nothing.
 */
export async function releaseNode(pinRoot: string = DEFAULT_PIN_ROOT): Promise<readonly string[]> {
  return removeAllPins(pinRoot);
}

/** What is pinned on this node. */
export interface PinnedNode {
  readonly abi: number;
  readonly programs: readonly string[];
  /** Undefined where the ABI is not ours. */
  readonly override: Override | undefined;
}

export async function inspectNode(
  native: Native,
  pinRoot: string = DEFAULT_PIN_ROOT,
): Promise<readonly PinnedNode[]> {
  const nodes: PinnedNode[] = [];
  for (const abi of await pinnedAbis(pinRoot)) {
    const pins = await listPins(pinDirectory(pinRoot, abi));
    if (pins === undefined) continue;
    const override =
      abi === ABI_VERSION ? withSettings(native, pinRoot, (settings) => settings.override()) : undefined;
    nodes.push({ abi, programs: pins.links, override });
  }
  return nodes;
}

/**
 * Puts an override above every policy of this node, without a running agent or beside one. It lasts until it is
 * changed, released or the node is booted. Rejects with an Error that tells what to do where nothing of this
 * version is pinned.
 */
export async function setOverrideOnNode(
  native: Native,
  override: Override,
  pinRoot: string = DEFAULT_PIN_ROOT,
): Promise<void> {
  const abis = await pinnedAbis(pinRoot);
  if (!abis.includes(ABI_VERSION)) {
    throw new Error(
      abis.length === 0
        ? `nothing is pinned under ${pinRoot}: no agent has enforced on this node since it was booted or released`
        : `what decides on this node is of ABI ${abis.join(', ')} and this command of ABI ${ABI_VERSION}; ` +
            'use the command of the agent that runs there, or release the node',
    );
  }
  // A running agent may write back what it read before us.
  for (let write = 0; write < WRITES_MAX; write++) {
    withSettings(native, pinRoot, (settings) => settings.setOverride(override));
    await delay(AGENT_WRITE_MS);
    if (withSettings(native, pinRoot, (settings) => settings.override()) === override) return;
  }
  throw new Error(`the override '${override}' does not stay: something else on this node keeps changing it`);
}

function withSettings<T>(
  native: Native,
  pinRoot: string,
  action: (settings: ReturnType<typeof createNodeSettings>) => T,
): T {
  const map = native.openPinnedMap(pinDirectory(pinRoot, ABI_VERSION).map('settings'));
  try {
    return action(createNodeSettings(map));
  } finally {
    map.close();
  }
}
