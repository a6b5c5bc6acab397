import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Native } from './native.ts';

export const DEFAULT_LOCK_PATH = '/run/runtime-enforcer/owner.lock';
/** Nobody answers the container runtime between two owners. */
const POLL_MS = 50;

/** Who writes the maps and reads the rings of this node. */
export interface Ownership {
  /** Rises by one with each owner. */
  readonly epoch: number;
  release(): void;
}

/** Another agent owns this node's enforcement. */
export class OwnerBusyError extends Error {
  override readonly name = 'OwnerBusyError';
}

interface OwnerRecord {
  readonly pid: number;
  readonly epoch: number;
}

/**
 * Takes the lock that one agent at a time holds; the kernel gives it back when its process ends, however it ends.
 * @param wait waits for the present owner to end, until the signal aborts; without it, throws an
 *   {@link OwnerBusyError} at once. `onWait` is called once, with a sentence, if there is something to wait for.
 */
export async function acquireOwnership(
  native: Pick<Native, 'tryLock'>,
  path: string,
  wait?: { readonly signal: AbortSignal; readonly onWait: (sentence: string) => void },
): Promise<Ownership> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  let waited = false;
  for (;;) {
    const lock = native.tryLock(path);
    if (lock !== undefined) {
      const epoch = ((await readOwner(path))?.epoch ?? 0) + 1;
      await writeFile(path, JSON.stringify({ pid: process.pid, epoch } satisfies OwnerRecord));
      return { epoch, release: () => lock.release() };
    }
    const owner = await readOwner(path);
    const who = owner === undefined ? 'another agent' : `the agent with pid ${owner.pid}`;
    if (wait === undefined) {
      throw new OwnerBusyError(`${who} enforces on this node already (it holds ${path}); end that one first`);
    }
    if (!waited) wait.onWait(`${who} enforces on this node; taking over when it ends`);
    waited = true;
    await delay(POLL_MS, undefined, { signal: wait.signal });
  }
}

async function readOwner(path: string): Promise<OwnerRecord | undefined> {
  try {
    const record: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof record !== 'object' || record === null) return undefined;
    const { pid, epoch } = record as Partial<OwnerRecord>;
    return Number.isSafeInteger(pid) && Number.isSafeInteger(epoch)
      ? ({ pid, epoch } as OwnerRecord)
      : undefined;
  } catch {
    // Empty at the first start, half written for a moment: it only tells people who it is.
    return undefined;
  }
}
