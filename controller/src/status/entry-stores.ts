import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import type { ReportedViolation } from '@runtime-enforcer/rpc/reported';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { EntryIntake, ReadEntry } from './agent-stream.ts';
import type { BelievedBatch, Refusal } from './believed-entries.ts';
import { unstoredEntries, type UnstoredEntries } from './unstored-entries.ts';

/** How often refusals of one node and reason are logged. */
const TELL_EVERY_MS = 60_000;

/** What was read from agents and is not yet in a status. */
export interface EntryStores {
  readonly intake: EntryIntake;
  readonly violations: UnstoredEntries<ReportedViolation>;
  readonly observations: UnstoredEntries<NodeObservation>;
  /** Takes out what a status holds, or never will. */
  settle<T>(from: UnstoredEntries<T>, key: string, batches: readonly BelievedBatch<T>[]): void;
  /** Takes out everything that concerns an object, as refused. */
  refuseAll<T>(from: UnstoredEntries<T>, key: string, refusal: Refusal, readBeforeMs?: number): void;
}

export interface EntryStoresOptions {
  readonly log: Logger;
  readonly onViolation: (policy: string) => void;
  readonly onObservation: (proposal: string) => void;
  readonly onRefused: (refusal: Refusal, entries: number) => void;
}

/** See {@link EntryStores}. */
export function entryStores({ log, onViolation, onObservation, onRefused }: EntryStoresOptions): EntryStores {
  const violations = unstoredEntries<ReportedViolation>();
  const observations = unstoredEntries<NodeObservation>();
  const told = new Map<string, number>();

  function refuse(nodeName: string, refusal: Refusal, entries: number, about: object): void {
    onRefused(refusal, entries);
    const key = JSON.stringify([nodeName, refusal]);
    const now = performance.now();
    if (now - (told.get(key) ?? -TELL_EVERY_MS) < TELL_EVERY_MS) return;
    told.set(key, now);
    log.warn(
      { node: nodeName, refusal, entries, ...about },
      'what an agent says is not believed, or not stored',
    );
  }

  function add<T>(to: UnstoredEntries<T>, key: string, entry: ReadEntry<T>, settled: () => void): void {
    const { nodeName, incarnation, sequence, value, previousCount } = entry;
    const read = { sequence, value, previousCount, readAtMs: performance.now() };
    to.add(key, { nodeName, incarnation }, read, settled);
  }

  return {
    violations,
    observations,
    intake: {
      violation(entry, settled) {
        const key = `${entry.value.namespace}/${entry.value.policyName}`;
        add(violations, key, entry, settled);
        onViolation(key);
      },
      observation(entry, settled) {
        const key = `${entry.value.namespace}/${entry.value.proposal}`;
        add(observations, key, entry, settled);
        onObservation(key);
      },
      refused: (nodeName, count, reasons) => refuse(nodeName, 'Malformed', count, { reasons }),
    },
    settle(from, key, batches) {
      for (const batch of batches) {
        for (const { entry, refusal } of batch.refused) {
          refuse(batch.nodeName, refusal, 1, { object: key, sequence: entry.sequence });
        }
        const all = [...batch.entries, ...batch.refused.map(({ entry }) => entry)];
        from.settle(
          key,
          batch,
          all.map(({ sequence }) => sequence),
        );
      }
    },
    refuseAll(from, key, refusal, readBeforeMs = Number.POSITIVE_INFINITY) {
      for (const queue of from.of(key)) {
        const entries = [...queue.entries.values()].filter(({ readAtMs }) => readAtMs < readBeforeMs);
        if (entries.length === 0) continue;
        refuse(queue.nodeName, refusal, entries.length, { object: key });
        from.settle(
          key,
          queue,
          entries.map(({ sequence }) => sequence),
        );
      }
    },
  };
}
