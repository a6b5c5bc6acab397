import { watch, type FSWatcher } from 'node:fs';
import { stat } from 'node:fs/promises';
import { CommandError } from '../commands/command-error.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import { problemOf } from '../node/bounded-file.ts';
import { createDirectoryScan, SETTLE_MS, type FileChange, type ScanResult } from './directory-scan.ts';

/** Pause between two looks at the directory, for where the kernel's notifications do not work. */
const RESCAN_MS = 500;
/** A large directory is looked at less often, so that looking takes no more than this share of the time. */
const MAX_SCAN_SHARE = 0.05;
const RESCAN_MAX_MS = 10_000;
/** Notifications within this time are one. */
const COALESCE_MS = 20;

/** Follows the policy files of a directory. */
export interface PolicyDirectory {
  /**
   * Resolves when the files that are there have been handed on. Rejects with a {@link CommandError} if the directory
   * cannot be read; when that happens later, everything stays as it was until it can be read again.
   */
  start(): Promise<void>;
  /** Resolves when the last changes have been handed on. */
  stop(): Promise<void>;
}

/** @param onChanges is given what changed; the next changes wait until it has resolved. Must not reject. */
export function createPolicyDirectory(options: {
  directory: string;
  onChanges: (changes: readonly FileChange[]) => Promise<void>;
  log: Logger;
  counters: AgentCounters;
}): PolicyDirectory {
  const { directory, onChanges, log, counters } = options;
  const files = createDirectoryScan(directory);
  const wake = createWake();
  let running: Promise<void> | undefined;
  let stopped = false;
  let watched: { readonly watcher: FSWatcher; readonly identity: string } | undefined;
  let trouble = '';

  /** Watches the directory that stands under the name now. */
  const follow = async (): Promise<void> => {
    const { dev, ino } = await stat(directory, { bigint: true });
    const identity = `${dev}:${ino}`;
    if (watched?.identity === identity || stopped) return;
    watched?.watcher.close();
    watched = undefined;
    const watcher = watch(directory, { persistent: false }, () => wake.set());
    watched = { watcher, identity };
    watcher.on('error', (error) => {
      log.debug({ err: error, directory }, 'the policy directory is not watched; it is looked at regularly');
      watcher.close();
      if (watched?.watcher === watcher) watched = undefined;
    });
  };

  const look = async (): Promise<ScanResult> => {
    // Watching comes first, so that no change falls between.
    await follow().catch((error: unknown) =>
      log.debug({ err: error, directory }, 'the policy directory cannot be watched'),
    );
    const result = await files.scan();
    if (result.changes.length > 0) await onChanges(result.changes);
    return result;
  };

  const tellTrouble = (problem: string): void => {
    if (problem === trouble) return;
    trouble = problem;
    if (problem === '') {
      log.info({ directory }, 'the policy directory can be read again');
    } else {
      counters.add('policy_files_unreadable');
      log.error(
        { directory, problem },
        'the policy directory cannot be read in full; policies stay as they are',
      );
    }
  };

  const run = async (firstPauseMs: number): Promise<void> => {
    for (let pauseMs = firstPauseMs; ;) {
      await wake.wait(pauseMs);
      if (stopped) return;
      const startedAt = performance.now();
      try {
        const { unsettled, partial, tooMany } = await look();
        tellTrouble(
          tooMany ? 'it holds more files than are read; use fewer, each with several policies' : '',
        );
        const tookMs = performance.now() - startedAt;
        pauseMs = Math.min(Math.max(RESCAN_MS, tookMs / MAX_SCAN_SHARE), RESCAN_MAX_MS);
        if (unsettled) pauseMs = SETTLE_MS;
        if (partial) pauseMs = 0;
      } catch (error) {
        tellTrouble(problemOf(error));
        pauseMs = RESCAN_MS;
      }
    }
  };

  return {
    async start() {
      try {
        for (let result = await look(); result.unsettled || result.partial; result = await look()) {
          if (!result.partial) await wake.wait(SETTLE_MS);
        }
      } catch (cause) {
        throw new CommandError(
          `cannot read the policy directory ${directory}: ${problemOf(cause)}; --policy-dir names a directory of YAML files`,
          { cause },
        );
      }
      running = run(RESCAN_MS);
    },
    async stop() {
      stopped = true;
      watched?.watcher.close();
      wake.set();
      await running;
    },
  };
}

/** A pause that ends early when it is told to; being told before it began counts. */
function createWake(): { set(): void; wait(ms: number): Promise<void> } {
  let isSet = false;
  let ring: () => void = () => undefined;
  return {
    set() {
      isSet = true;
      ring();
    },
    async wait(ms) {
      const pause = (timeoutMs: number): Promise<void> =>
        new Promise((resolve) => {
          const timer = setTimeout(resolve, timeoutMs);
          ring = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      if (!isSet) await pause(ms);
      if (isSet) await new Promise((resolve) => setTimeout(resolve, COALESCE_MS));
      isSet = false;
      ring = () => undefined;
    },
  };
}
