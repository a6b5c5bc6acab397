import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_CURSOR, type Cursor, type ReportedPolicies } from '@runtime-enforcer/rpc/reported';
import type { PolicyState } from '../policies/policy-state.ts';
import { examplePolicy } from './observer-example.ts';
import { createPolicyRevisions, type PolicyRevisions } from './policy-revisions.ts';

/** What a reader makes of the pages that it gets. */
function createReader(revisions: PolicyRevisions) {
  let cursor: Cursor = NO_CURSOR;
  let known = new Map<string, string>();
  const take = (page: ReportedPolicies): void => {
    if (page.resync) known = new Map();
    for (const [key, { digest }] of page.policies) known.set(key, digest);
    for (const key of page.removed) known.delete(key);
    cursor = page.cursor;
  };
  return {
    known: () => known,
    readPage(): ReportedPolicies | undefined {
      const page = revisions.changedSince(cursor);
      if (page !== undefined) take(page);
      return page;
    },
    readAll(): number {
      let pages = 0;
      while (this.readPage() !== undefined) pages++;
      return pages;
    },
  };
}

describe('createPolicyRevisions', () => {
  it('tells a node without policies once, and then nothing', () => {
    const reader = createReader(createPolicyRevisions(() => new Map()));
    expect(reader.readPage()).toMatchObject({ resync: true, more: false });
    expect(reader.readPage()).toBeUndefined();
  });

  it('begins anew for a reader of another life, or of a time that has been forgotten', () => {
    const states = new Map<string, PolicyState>();
    const revisions = createPolicyRevisions(() => states, { maxRemoved: 2, incarnation: 'now' });
    for (const key of ['a', 'b', 'c', 'd']) states.set(`shop/${key}`, examplePolicy());
    revisions.refresh();
    const read = createReader(revisions);
    read.readAll();
    for (const key of ['a', 'b', 'c']) states.delete(`shop/${key}`);
    revisions.refresh();
    expect(revisions.changedSince({ incarnation: 'before', sequence: 5 })).toMatchObject({ resync: true });
    expect(revisions.changedSince({ incarnation: 'now', sequence: 999 })).toMatchObject({ resync: true });
    expect(read.readPage()).toMatchObject({ resync: true, removed: [] });
    expect([...read.known().keys()]).toEqual(['shop/d']);
  });

  it('leaves every reader with what there is, whenever it reads', () => {
    const key = fc.nat({ max: 9 }).map((index) => `shop/policy-${index}`);
    const change = fc.oneof(
      fc.record({ kind: fc.constant('set' as const), key, digest: fc.string({ maxLength: 3 }) }),
      fc.record({ kind: fc.constant('delete' as const), key }),
      fc.record({ kind: fc.constant('refresh' as const) }),
      fc.record({ kind: fc.constant('read' as const), reader: fc.nat({ max: 1 }) }),
    );
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 80 }),
        fc.integer({ min: 0, max: 3 }),
        (changes, maxRemoved) => {
          const states = new Map<string, PolicyState>();
          const revisions = createPolicyRevisions(() => states, { maxRemoved });
          const readers = [createReader(revisions), createReader(revisions)];
          for (const made of changes) {
            if (made.kind === 'set') states.set(made.key, examplePolicy({ digest: made.digest }));
            if (made.kind === 'delete') states.delete(made.key);
            if (made.kind === 'refresh') revisions.refresh();
            if (made.kind === 'read') readers[made.reader]?.readPage();
          }
          revisions.refresh();
          const expected = new Map(Array.from(states, ([name, { digest }]) => [name, digest]));
          for (const reader of readers) {
            expect(reader.readAll()).toBeLessThan(5);
            expect(reader.known()).toEqual(expected);
          }
        },
      ),
    );
  });
});
