import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exampleLog, openExampleMaps } from '../kernel/kernel-maps-example.ts';
import { loadNative } from '../kernel/native.ts';
import { entryCount, examplePolicy, isListed, wordOf } from './policy-example.ts';
import { createPolicyTable, type PolicyAnswer, type PolicyTable, type PolicyUse } from './policy-table.ts';

const native = loadNative();
const CAPACITY = 64;
const many = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `/${prefix}/${i}`);

let opened: ReturnType<typeof openExampleMaps>;
let table: PolicyTable;
let failures: string[];
beforeEach(async () => {
  failures = [];
  opened = openExampleMaps(native, { capacity: CAPACITY });
  table = await createPolicyTable({
    ...{ native, maps: opened.maps, log: exampleLog().log },
    countFailure: (place) => failures.push(place),
  });
});
afterEach(async () => {
  await table.settled();
  opened.close();
  expect(failures).toEqual([]);
});

function policyOf(namespace: string, name: string, paths: readonly string[]) {
  const policy = examplePolicy(name, { app: paths });
  return { ...policy, metadata: { ...policy.metadata, namespace } };
}
function used(answer: PolicyAnswer): PolicyUse {
  if (answer.kind !== 'enforced') throw new Error(`expected 'enforced', got ${JSON.stringify(answer)}`);
  return answer.use;
}
function allows({ policyId }: PolicyUse, path: string): boolean {
  const word = wordOf(opened.maps, policyId);
  return word !== undefined && isListed(opened.maps, word.list, Buffer.from(path));
}
/** A namespace makes policies until none fits any more, and some beyond that. */
async function flood(namespace: string): Promise<void> {
  for (let i = 0; i < 20; i++) await table.apply(policyOf(namespace, `p${i}`, many(`${namespace}-${i}`, 10)));
  expect(await entryCount(opened.maps)).toBeGreaterThan(CAPACITY - 10);
  expect(table.state(`${namespace}/p19`)).toMatchObject({ state: 'failed', paths: 0 });
  expect(table.state(`${namespace}/p19`)?.message).toContain('--capacity');
}

describe('a namespace that fills the tables with policies', () => {
  it('takes nothing from the bound policy of another', async () => {
    await table.apply(policyOf('shop', 'web', many('web', 10)));
    const web = used(await table.acquire('shop/web', 'app'));
    await flood('greedy');
    expect(table.state('shop/web')?.state).toBe('ready');
    expect([allows(web, '/web/9'), allows(web, '/greedy-0/0')]).toEqual([true, false]);
  });

  it('keeps no container of another from its policy', async () => {
    await flood('greedy');
    await table.apply(policyOf('shop', 'late', many('late', 10)));
    const late = used(await table.acquire('shop/late', 'app'));
    expect([allows(late, '/late/9'), table.state('shop/late')?.state]).toEqual([true, 'ready']);
  });

  it('keeps no other from changing a policy that is bound', async () => {
    await table.apply(policyOf('shop', 'web', many('web', 10)));
    const web = used(await table.acquire('shop/web', 'app'));
    await flood('greedy');
    const changed = await table.apply(policyOf('shop', 'web', many('tight', 12)));
    expect(changed).toMatchObject({ state: 'ready', paths: 12 });
    expect([allows(web, '/tight/11'), allows(web, '/web/0')]).toEqual([true, false]);
  });

  it('gets room only for containers that it has, and gives it back with them', async () => {
    await table.apply(policyOf('shop', 'web', many('web', 10)));
    const web = used(await table.acquire('shop/web', 'app'));
    await flood('greedy');
    const held: PolicyUse[] = [];
    for (let i = 0; i < 20; i++) {
      const answer = await table.acquire(`greedy/p${i}`, 'app');
      if (answer.kind === 'enforced') held.push(answer.use);
      // What is refused here is a container that does not start: none runs without a list.
      else
        expect(answer).toMatchObject({
          kind: 'failed',
          message: expect.stringContaining('--capacity') as string,
        });
    }
    expect(held).toHaveLength(5);
    expect(allows(web, '/web/9')).toBe(true);
    expect((await table.apply(policyOf('shop', 'web', many('tight', 12)))).state).toBe('failed');
    expect(allows(web, '/web/9')).toBe(true);
    for (const use of held) use.release();
    for (let i = 0; i < 20; i++) await table.remove(`greedy/p${i}`);
    await expect.poll(() => table.state('shop/web')?.state, { timeout: 5_000 }).toBe('ready');
    expect([allows(web, '/tight/11'), allows(web, '/web/9')]).toEqual([true, false]);
  });
});
