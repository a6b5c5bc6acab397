import { randomUUID } from 'node:crypto';
import type { Cursor, ReportedPolicies, ReportedPolicy } from '@runtime-enforcer/rpc/reported';
import type { PolicyState } from '../policies/policy-state.ts';
import { fillPage } from './page-limits.ts';
import { isSamePolicy, reportedPolicy } from './policy-report.ts';

/** Removed policies that are remembered for readers that have not heard of it. */
const MAX_REMOVED = 10_000;
/** When a policy changes, all nodes tell of it at once, and a controller holds what has come of the page of each. */
const PAGE_BYTES = 32 * 1024;

interface Revision {
  readonly sequence: number;
  readonly policy: ReportedPolicy | undefined;
  /** What the policy was made of: the same object holds the same state. */
  state: PolicyState | undefined;
}

/** Numbers the changes of the policies' states, so that a reader is told only what it has not been told. */
export interface PolicyRevisions {
  /** Looks for changes. @returns whether there are any */
  refresh(): boolean;
  /** What changed behind a cursor; undefined when nothing has. At most one page. */
  changedSince(cursor: Cursor): ReportedPolicies | undefined;
}

/** @param states by `namespace/name` */
export function createPolicyRevisions(
  states: () => ReadonlyMap<string, PolicyState>,
  {
    maxRemoved = MAX_REMOVED,
    incarnation = randomUUID(),
  }: { maxRemoved?: number; incarnation?: string } = {},
): PolicyRevisions {
  // By sequence: what changes is put last.
  const revisions = new Map<string, Revision>();
  let removedCount = 0;
  // Never 0: a reader that knows of no policy is told from one that has heard nothing yet.
  let sequence = 1;
  /** Of the newest removal that has been forgotten. */
  let forgotten = 0;

  const revise = (key: string, policy: ReportedPolicy | undefined, state?: PolicyState): void => {
    const known = revisions.get(key);
    if (known !== undefined && known.policy === undefined) removedCount--;
    if (policy === undefined) removedCount++;
    revisions.delete(key);
    revisions.set(key, { sequence: ++sequence, policy, state });
  };
  const forgetRemoved = (): void => {
    for (const [key, revision] of revisions) {
      if (removedCount <= maxRemoved) return;
      if (revision.policy !== undefined) continue;
      revisions.delete(key);
      removedCount--;
      forgotten = revision.sequence;
    }
  };

  function* changedBehind(after: number, withoutRemoved: boolean): Generator<[key: string, Revision]> {
    for (const entry of revisions) {
      const [, { sequence: at, policy }] = entry;
      if (at > after && !(withoutRemoved && policy === undefined)) yield entry;
    }
  }

  return {
    refresh() {
      const before = sequence;
      const now = states();
      for (const [key, state] of now) {
        const known = revisions.get(key);
        if (known?.state === state) continue;
        const policy = reportedPolicy(state);
        if (known?.policy !== undefined && isSamePolicy(known.policy, policy)) known.state = state;
        else revise(key, policy, state);
      }
      // All that there are stand here now, so that more can only be those that are gone.
      if (revisions.size - removedCount > now.size) {
        const gone = Array.from(revisions).filter(
          ([key, { policy }]) => policy !== undefined && !now.has(key),
        );
        for (const [key] of gone) revise(key, undefined);
        forgetRemoved();
      }
      return sequence !== before;
    },
    changedSince(cursor) {
      const isOurs = cursor.incarnation === incarnation && cursor.sequence <= sequence;
      const after = isOurs && cursor.sequence >= forgotten ? cursor.sequence : 0;
      // A reader in the middle of the first listing goes on with it; removals it missed did not concern it.
      const resync = after === 0;
      if (!resync && after === sequence) return undefined;
      // What stands in the page, and nothing of what it was made of.
      const { page, full: more } = fillPage(
        changedBehind(after, resync),
        ([key, { policy, sequence: at }]) => [key, policy, at] as const,
        PAGE_BYTES,
      );
      const policies = new Map<string, ReportedPolicy>();
      const removed: string[] = [];
      for (const [key, policy] of page) {
        if (policy === undefined) removed.push(key);
        else policies.set(key, policy);
      }
      const last = more ? page.at(-1)?.[2] : undefined;
      return {
        cursor: { incarnation, sequence: last ?? sequence },
        resync,
        policies,
        removed,
        more,
      };
    },
  };
}
