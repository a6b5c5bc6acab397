import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { containerOf } from '../containers/kernel-answer-example.ts';
import { createContainerSlots } from '../containers/container-slots.ts';
import { createAllowLists } from '../policies/allow-list.ts';
import { createAllowedTables } from '../policies/allowed-tables.ts';
import { createPathInterner } from '../policies/path-interner.ts';
import { entryCount, examplePath, examplePolicy, isListed, wordOf } from '../policies/policy-example.ts';
import { createPolicyTable, type PolicyUse } from '../policies/policy-table.ts';
import { createGracePeriod } from './grace-period.ts';
import { EXAMPLE_FACTS, exampleLog, openExampleMaps } from './kernel-maps-example.ts';
import { loadNative } from './native.ts';

const native = loadNative();
/** Longer than what does not wait would take to happen. */
const TURNS = 50;

async function manyTurns(): Promise<void> {
  for (let i = 0; i < TURNS; i++) await turn();
}

// A program of the kernel reads slot, word and list one after another. What it read last must still be there.
describe('what leaves the kernel waits until no program can still come upon it', () => {
  let opened: ReturnType<typeof openExampleMaps>;
  let waits: (() => void)[];
  let grace: ReturnType<typeof createGracePeriod>;
  let failures: string[];

  const waitForReaders = (): Promise<void> =>
    new Promise((resolve) => {
      waits.push(resolve);
    });
  /** The programs that run now end, and those that came meanwhile. */
  const readersEnd = async (): Promise<void> => {
    do {
      waits.splice(0).forEach((end) => end());
      await manyTurns();
    } while (waits.length > 0);
  };
  const countFailure = (place: string): void => void failures.push(place);
  const makeTable = () =>
    createPolicyTable({
      ...{ native: { waitForReaders }, maps: opened.maps, log: exampleLog().log, countFailure },
    });
  const acquire = async (table: Awaited<ReturnType<typeof makeTable>>, name: string): Promise<PolicyUse> => {
    const answer = await table.acquire(name, 'app');
    if (answer.kind !== 'enforced') throw new Error(`expected 'enforced', got ${answer.kind}`);
    return answer.use;
  };
  const lists = (list: number, path: string): boolean => isListed(opened.maps, list, Buffer.from(path));

  beforeEach(() => {
    opened = openExampleMaps(native);
    waits = [];
    failures = [];
    grace = createGracePeriod({ waitForReaders });
  });
  afterEach(() => {
    opened.close();
    expect(failures).toEqual([]);
  });

  it('a list that is given back', async () => {
    const interner = createPathInterner();
    const allowLists = createAllowLists(createAllowedTables(opened.maps.allowed, interner), interner, grace);
    const list = allowLists.take([examplePath('/bin/a')]);
    await allowLists.load(list);
    const { id } = list;
    const released = allowLists.release(list);
    await manyTurns();
    expect(lists(id, '/bin/a')).toBe(true);
    await readersEnd();
    await released;
    expect(lists(id, '/bin/a')).toBe(false);
  });

  it('the list before an edit, whose successor decides at once', async () => {
    const table = await makeTable();
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const { policyId } = await acquire(table, 'shop/web');
    const before = wordOf(opened.maps, policyId)?.list ?? 0;
    const applied = table.apply(examplePolicy('web', { app: ['/bin/b'] }));
    await expect.poll(() => wordOf(opened.maps, policyId)?.list, { timeout: 10_000 }).not.toBe(before);
    await manyTurns();
    const after = wordOf(opened.maps, policyId)?.list ?? 0;
    expect([lists(before, '/bin/a'), lists(after, '/bin/b')]).toEqual([true, true]);
    await readersEnd();
    await applied;
    await table.settled();
    expect([lists(before, '/bin/a'), lists(after, '/bin/b')]).toEqual([false, true]);
  });

  it('the list and the id of a policy whose last container ended', async () => {
    const table = await makeTable();
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const use = await acquire(table, 'shop/web');
    const list = wordOf(opened.maps, use.policyId)?.list ?? 0;
    await table.remove('shop/web');
    use.release();
    await manyTurns();
    expect(lists(list, '/bin/a')).toBe(true);
    await table.apply(examplePolicy('other', { app: ['/bin/b'] }));
    expect((await acquire(table, 'shop/other')).policyId).not.toBe(use.policyId);
    await readersEnd();
    await table.settled();
    expect(lists(list, '/bin/a')).toBe(false);
  });

  it('lists of an agent before that nothing refers to any more', async () => {
    const first = await makeTable();
    await first.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const { policyId } = await acquire(first, 'shop/web');
    const list = wordOf(opened.maps, policyId)?.list ?? 0;
    const second = await makeTable();
    second.complete();
    const dropped = second.dropInherited();
    await manyTurns();
    expect(lists(list, '/bin/a')).toBe(true);
    await readersEnd();
    await dropped;
    await second.settled();
    expect(await entryCount(opened.maps)).toBe(0);
  });

  it('the place of a container', async () => {
    const { hostMountNamespace } = EXAMPLE_FACTS;
    const slots = createContainerSlots({ maps: opened.maps, grace, hostMountNamespace, countFailure });
    const content = { cgroupId: 70_001n, mountNamespace: 9_001, policyId: 5, learn: false, initPid: 321 };
    const { free } = slots;
    const slot = slots.bind(content);
    const released = slots.release(slot);
    await manyTurns();
    expect(containerOf(opened.maps, 70_001n)).toBeUndefined();
    expect(slots.free).toBe(free - 1);
    expect(slots.bind({ ...content, policyId: 6 }).slot).not.toBe(slot.slot);
    await readersEnd();
    await released;
    expect(slots.free).toBe(free - 1);
    expect(slots.bind({ ...content, cgroupId: 70_001n + 4_096n }).slot).toBe(slot.slot);
  });
});
