import type { ExecOrigin } from '@runtime-enforcer/api/exec-origin';
import type { LearnedPath } from '@runtime-enforcer/api/learned-paths';
import { mergeObservation } from '@runtime-enforcer/api/learned-paths';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import type { CumulativeLog } from '../violations/cumulative-log.ts';

/** Different executables of all workloads of a node. */
const MAX_ENTRIES = 20_000;
/** How often repeats alone are told. */
const REPEATS_MS = 30_000;

/** Execs of one path that are to be added to what was observed before. */
export interface ObservedExecs {
  readonly count: number;
  /** Unix epoch, in milliseconds. */
  readonly firstMs: number;
  readonly lastMs: number;
  readonly origins: readonly ExecOrigin[];
  readonly podName: string;
}

/** The evidence of this node for the paths of its workloads' proposals. */
export interface ObservationBook {
  start(): void;
  /** False: there is no room for another path. */
  add(proposal: ProposalName, path: LearnedPath, execs: ObservedExecs): boolean;
  /** No container of the workload is left here: what was seen stays in the log until it is acknowledged. */
  remove(proposal: ProposalName): void;
  /** Tells the repeats that wait. */
  flush(): void;
  stop(): void;
  readonly size: number;
}

export interface ProposalName {
  readonly namespace: string;
  readonly name: string;
}

export function createObservationBook(options: {
  readonly log: CumulativeLog<NodeObservation>;
  readonly nodeName: string;
  readonly maxEntries?: number;
  readonly repeatsMs?: number;
}): ObservationBook {
  const { log, nodeName, maxEntries = MAX_ENTRIES, repeatsMs = REPEATS_MS } = options;
  /** By proposal, then by path. */
  const books = new Map<string, Map<string, { readonly key: string; value: NodeObservation }>>();
  const changed = new Set<{ readonly key: string; value: NodeObservation }>();
  /** A key is never used for a second count that begins anew: readers add up differences. */
  let entriesMade = 0;
  let size = 0;
  let timer: NodeJS.Timeout | undefined;

  const flush = (): void => {
    for (const { key, value } of changed) log.put(key, value);
    changed.clear();
  };

  return {
    start() {
      timer ??= setInterval(flush, repeatsMs).unref();
    },
    add(
      { namespace, name },
      { containerName, executablePath },
      { count, firstMs, lastMs, origins, podName },
    ) {
      const fresh: NodeObservation = {
        ...{ namespace, proposal: name, containerName, executablePath, count, origins },
        firstSeen: new Date(firstMs).toISOString(),
        lastSeen: new Date(lastMs).toISOString(),
        pods: [podName],
        nodes: [nodeName],
      };
      const bookKey = `${namespace}/${name}`;
      const pathId = `${containerName} ${executablePath}`;
      const book = books.get(bookKey) ?? new Map<string, { readonly key: string; value: NodeObservation }>();
      const known = book.get(pathId);
      if (known !== undefined) {
        known.value = { ...fresh, ...mergeObservation(known.value, fresh) };
        changed.add(known);
        return true;
      }
      if (size >= maxEntries) return false;
      const entry = {
        key: JSON.stringify([bookKey, containerName, executablePath, ++entriesMade]),
        value: fresh,
      };
      book.set(pathId, entry);
      books.set(bookKey, book);
      size++;
      log.put(entry.key, fresh);
      return true;
    },
    remove({ namespace, name }) {
      const bookKey = `${namespace}/${name}`;
      for (const entry of books.get(bookKey)?.values() ?? []) {
        if (changed.delete(entry)) log.put(entry.key, entry.value);
        log.remove(entry.key);
        size--;
      }
      books.delete(bookKey);
    },
    flush,
    stop() {
      clearInterval(timer);
      flush();
    },
    get size() {
      return size;
    },
  };
}
