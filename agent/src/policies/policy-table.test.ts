import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exampleLog, openExampleMaps } from '../kernel/kernel-maps-example.ts';
import { loadNative } from '../kernel/native.ts';
import { entryCount, examplePolicy, isListed, wordOf } from './policy-example.ts';
import { createPolicyTable, type PolicyAnswer, type PolicyTable } from './policy-table.ts';
import { decodePolicyWord, type PolicyWord } from './policy-words.ts';

const native = loadNative();
const bytes = (text: string): Uint8Array => Buffer.from(text);

function used(answer: PolicyAnswer) {
  if (answer.kind !== 'enforced') throw new Error(`expected 'enforced', got ${JSON.stringify(answer)}`);
  return answer.use;
}

describe('policy table', () => {
  let opened: ReturnType<typeof openExampleMaps>;
  let table: PolicyTable;
  let failures: string[];

  const makeTable = () =>
    createPolicyTable({
      native,
      maps: opened.maps,
      log: exampleLog().log,
      countFailure: (place) => failures.push(place),
    });
  const allows = (policyId: number, path: string): boolean => {
    const word = wordOf(opened.maps, policyId);
    return word !== undefined && isListed(opened.maps, word.list, bytes(path));
  };

  beforeEach(async () => {
    failures = [];
    opened = openExampleMaps(native);
    table = await makeTable();
  });
  afterEach(async () => {
    await table.settled();
    opened.close();
    expect(failures).toEqual([]);
  });

  it('loads every container of a policy and reads it back', async () => {
    const state = await table.apply(examplePolicy('web', { app: ['/bin/a', '/bin/b'], side: ['/bin/c'] }));
    expect(state).toMatchObject({ state: 'ready', mode: 'protect', paths: 3 });
    expect(table.state('shop/web')).toEqual(state);
    const app = used(await table.acquire('shop/web', 'app'));
    const side = used(await table.acquire('shop/web', 'side'));
    expect(wordOf(opened.maps, app.policyId)).toMatchObject({
      mode: 'protect',
      otherMountNamespaces: 'deny',
    });
    expect(allows(app.policyId, '/bin/a')).toBe(true);
    expect(allows(app.policyId, '/bin/c')).toBe(false);
    expect(allows(side.policyId, '/bin/c')).toBe(true);
    expect(allows(side.policyId, '/bin/a')).toBe(false);
  });

  it('answers for containers that the policy does not name', async () => {
    await table.apply(examplePolicy('open', { app: ['/bin/a'] }));
    await table.apply(examplePolicy('closed', { app: ['/bin/a'] }, { unlistedContainers: 'deny' }));
    expect(await table.acquire('shop/open', 'debugger')).toEqual({ kind: 'unrestricted' });
    const use = used(await table.acquire('shop/closed', 'debugger'));
    expect(use.listed).toBe(false);
    expect(wordOf(opened.maps, use.policyId)?.mode).toBe('protect');
    expect(allows(use.policyId, '/bin/a')).toBe(false);
    expect(await table.acquire('shop/none', 'app')).toEqual({ kind: 'unknown' });
  });

  it('changes list and mode in one store and takes the old list out', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a', '/bin/b'] }));
    const { policyId } = used(await table.acquire('shop/web', 'app'));
    const before = wordOf(opened.maps, policyId);
    await table.apply(examplePolicy('web', { app: ['/bin/b', '/bin/c'] }, { mode: 'monitor' }));
    const after = wordOf(opened.maps, policyId);
    expect(after?.mode).toBe('monitor');
    expect(after?.list).not.toBe(before?.list);
    expect([allows(policyId, '/bin/a'), allows(policyId, '/bin/c')]).toEqual([false, true]);
    await table.settled();
    expect(isListed(opened.maps, before?.list ?? 0, bytes('/bin/a'))).toBe(false);
    expect(await entryCount(opened.maps)).toBe(2);
  });

  it('shows the kernel no word between the one before a change and the one after', async () => {
    const { policies } = opened.maps;
    const stored: PolicyWord[] = [];
    const watched = await createPolicyTable({
      native,
      maps: {
        ...opened.maps,
        policies: {
          ...policies,
          maxEntries: policies.maxEntries,
          update(key, value, flags) {
            stored.push(decodePolicyWord(Buffer.from(value).readBigUInt64LE()));
            policies.update(key, value, flags);
          },
        },
      },
      log: exampleLog().log,
      countFailure: (place) => failures.push(place),
    });
    const versions = [
      examplePolicy('web', { app: ['/bin/a'] }),
      examplePolicy('web', { app: ['/bin/b'] }, { mode: 'monitor' }),
      examplePolicy('web', { app: ['/bin/c'] }),
    ];
    for (const version of versions) {
      await watched.apply(version);
      const use = used(await watched.acquire('shop/web', 'app'));
      expect(stored.at(-1)).toEqual(wordOf(opened.maps, use.policyId));
      use.release();
    }
    expect(stored.map(({ mode }) => mode)).toEqual(['protect', 'monitor', 'protect']);
    expect(new Set(stored.map(({ list }) => list)).size).toBe(versions.length);
    await watched.settled();
  });

  it('changes only the word where only the mode or a flag changes', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const { policyId } = used(await table.acquire('shop/web', 'app'));
    const list = wordOf(opened.maps, policyId)?.list;
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }, { mode: 'monitor' }));
    expect(wordOf(opened.maps, policyId)).toEqual({ list, mode: 'monitor', otherMountNamespaces: 'deny' });
    const rules = { app: { executables: { allowed: ['/bin/a'], otherMountNamespaces: 'unchecked' } } };
    await table.apply(examplePolicy('web', {}, { mode: 'monitor', rulesByContainer: rules }));
    expect(wordOf(opened.maps, policyId)).toEqual({
      list,
      mode: 'monitor',
      otherMountNamespaces: 'unchecked',
    });
  });

  it('shares equal lists, whatever their order, and keeps them while one is used', async () => {
    await table.apply(examplePolicy('one', { app: ['/bin/a', '/bin/b'] }));
    await table.apply(examplePolicy('two', { app: ['/bin/b', '/bin/a'] }));
    expect(await entryCount(opened.maps)).toBe(2);
    const { policyId } = used(await table.acquire('shop/two', 'app'));
    await table.remove('shop/one');
    await table.settled();
    expect(allows(policyId, '/bin/a')).toBe(true);
    expect(table.state('shop/one')).toBeUndefined();
  });

  it('leaves nothing behind when everything is removed', async () => {
    for (let i = 0; i < 20; i++) {
      await table.apply(examplePolicy(`p${i}`, { app: ['/bin/a', `/bin/${i}`], side: [`/sbin/${i}`] }));
    }
    for (let i = 0; i < 20; i++) await table.remove(`shop/p${i}`);
    await table.settled();
    expect(await entryCount(opened.maps)).toBe(0);
    const words = await opened.maps.policies.entries();
    expect(words.values.every((byte) => byte === 0)).toBe(true);
    expect(table.states().size).toBe(0);
  });

  it('gives what a removed policy had to another only when nobody in the kernel reads by it', async () => {
    const { policies } = opened.maps;
    let readers = Promise.resolve();
    const small = await createPolicyTable({
      native: { waitForReaders: async () => await readers },
      // Room for two policies: an id is not used again before all were.
      maps: { ...opened.maps, policies: { ...policies, maxEntries: 3 } },
      log: exampleLog().log,
      countFailure: (place) => failures.push(place),
    });
    await small.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const web = used(await small.acquire('shop/web', 'app'));
    const list = wordOf(opened.maps, web.policyId)?.list ?? 0;
    web.release();
    const gate = Promise.withResolvers<undefined>();
    readers = gate.promise.then(() => undefined);
    await small.remove('shop/web');
    await small.apply(examplePolicy('other', { app: ['/bin/b'] }));
    expect(await small.apply(examplePolicy('later', { app: ['/bin/c'] }))).toMatchObject({ state: 'failed' });
    expect(isListed(opened.maps, list, bytes('/bin/a'))).toBe(true);
    gate.resolve(undefined);
    await small.settled();
    expect(isListed(opened.maps, list, bytes('/bin/a'))).toBe(false);
    expect(used(await small.acquire('shop/later', 'app')).policyId).toBe(web.policyId);
  });

  it('keeps the last list of a removed policy for the containers that use it', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'], side: ['/bin/b'] }));
    const use = used(await table.acquire('shop/web', 'app'));
    await table.remove('shop/web');
    expect(table.state('shop/web')).toMatchObject({ state: 'retained', paths: 1 });
    expect(allows(use.policyId, '/bin/a')).toBe(true);
    expect(await table.acquire('shop/web', 'app')).toEqual({ kind: 'unknown' });
    expect(use.stale).toBe(false);
    use.release();
    use.release();
    await table.settled();
    expect(table.state('shop/web')).toBeUndefined();
    expect(await entryCount(opened.maps)).toBe(0);
  });

  it('goes on with a removed policy that comes again', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const use = used(await table.acquire('shop/web', 'app'));
    await table.remove('shop/web');
    expect(await table.apply(examplePolicy('web', { app: ['/bin/b'] }))).toMatchObject({ state: 'ready' });
    expect([allows(use.policyId, '/bin/a'), allows(use.policyId, '/bin/b')]).toEqual([false, true]);
  });

  it('tells a container that the policy stopped or began to name it', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'], side: ['/bin/b'] }));
    const use = used(await table.acquire('shop/web', 'side'));
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    expect(use.stale).toBe(true);
    expect(allows(use.policyId, '/bin/b')).toBe(true);
    use.release();
    await table.settled();
    expect(wordOf(opened.maps, use.policyId)).toBeUndefined();
    expect(await entryCount(opened.maps)).toBe(1);
  });

  it('fails for a path that this kernel cannot hold, and changes nothing', async () => {
    opened.close();
    opened = openExampleMaps(native, { facts: { largeKeys: false } });
    table = await makeTable();
    const longest = `/${'d'.repeat(250)}/${'f'.repeat(256)}`;
    expect(longest.length).toBe(508);
    await table.apply(examplePolicy('web', { app: ['/bin/a', longest] }));
    const use = used(await table.acquire('shop/web', 'app'));
    expect(allows(use.policyId, longest)).toBe(true);
    const state = await table.apply(examplePolicy('web', { app: ['/bin/b', `${longest}x`] }));
    expect(state).toMatchObject({ state: 'failed', paths: 2 });
    expect(state.message).toMatch(
      /spec\.rulesByContainer\.app\.executables\.allowed.* 509 bytes.* 508;.*stays in force/,
    );
    expect([allows(use.policyId, '/bin/a'), allows(use.policyId, '/bin/b')]).toEqual([true, false]);
    const other = await table.apply(examplePolicy('new', { app: [`${longest}x`] }));
    expect(other).toMatchObject({ state: 'failed', paths: 0 });
    expect(await table.acquire('shop/new', 'app')).toMatchObject({ kind: 'failed' });
    expect(await entryCount(opened.maps)).toBe(2);
  });

  it('says why a policy cannot be taken to whoever needs it, and does not call it ready', async () => {
    const message = 'spec.mode: "blok" is not known; expected one of monitor, protect';
    expect(await table.refuse('shop/web', message)).toMatchObject({ state: 'failed', message, paths: 0 });
    expect(await table.acquire('shop/web', 'app')).toEqual({ kind: 'failed', message });
    expect(table.state('shop/web')).toMatchObject({ state: 'failed', message });
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    expect(table.state('shop/web')?.state).toBe('ready');
    await table.refuse('shop/web', message);
    const use = used(await table.acquire('shop/web', 'app'));
    expect(allows(use.policyId, '/bin/a')).toBe(true);
    expect(await table.acquire('shop/web', 'other')).toEqual({ kind: 'unrestricted' });
    expect(table.state('shop/web')).toMatchObject({
      state: 'failed',
      paths: 1,
      message: `${message}; what was loaded before stays in force`,
    });
    await table.remove('shop/web');
    expect(table.state('shop/web')?.state).toBe('retained');
    await table.refuse('shop/web', message);
    expect(await table.acquire('shop/web', 'app')).toMatchObject({ kind: 'failed' });
    use.release();
    expect(table.state('shop/web')?.state).toBe('failed');
    await table.remove('shop/web');
    expect(table.state('shop/web')).toBeUndefined();
  });

  it('holds a path of every length that the kernel can', async () => {
    for (let length = 2; length <= 4095; length = length < 1100 ? length + 1 : length + 331) {
      const path = longPath(length);
      expect(await table.apply(examplePolicy('web', { app: [path] }))).toMatchObject({ state: 'ready' });
      const use = used(await table.acquire('shop/web', 'app'));
      expect(allows(use.policyId, path)).toBe(true);
      use.release();
    }
  });

  it('keeps bytes that are not UTF-8 as they are', async () => {
    await table.apply(examplePolicy('web', { app: [String.raw`/bin/\xff\xfe`, '/bin/ü'] }));
    const use = used(await table.acquire('shop/web', 'app'));
    const word = wordOf(opened.maps, use.policyId);
    expect(isListed(opened.maps, word?.list ?? 0, Buffer.from([...bytes('/bin/'), 0xff, 0xfe]))).toBe(true);
    expect(allows(use.policyId, '/bin/ü')).toBe(true);
  });

  describe('with little room', () => {
    const many = (prefix: string, count: number) =>
      Array.from({ length: count }, (_, i) => `/${prefix}/${i}`);

    beforeEach(async () => {
      opened.close();
      opened = openExampleMaps(native, { capacity: 64 });
      table = await makeTable();
    });

    it('fails for a policy that does not fit, keeps the others, and takes it in when there is room', async () => {
      await table.apply(examplePolicy('one', { app: many('a', 40) }));
      const state = await table.apply(examplePolicy('two', { app: many('b', 40) }));
      expect(state).toMatchObject({ state: 'failed', paths: 0 });
      expect(state.message).toContain('--capacity');
      expect(await entryCount(opened.maps)).toBe(40);
      expect(table.state('shop/one')?.state).toBe('ready');
      expect(await table.apply(examplePolicy('small', { app: many('c', 20) }))).toMatchObject({
        state: 'ready',
      });
      await table.remove('shop/one');
      await table.settled();
      await expect.poll(() => table.state('shop/two')?.state).toBe('ready');
      expect(await entryCount(opened.maps)).toBe(60);
    });

    it('lets unused lists give way to the one that a container needs', async () => {
      await table.apply(examplePolicy('used', { app: many('a', 20) }));
      const kept = used(await table.acquire('shop/used', 'app'));
      await table.apply(examplePolicy('unused', { app: many('b', 40) }));
      expect(await table.apply(examplePolicy('needed', { app: many('c', 40) }))).toMatchObject({
        state: 'failed',
      });
      const use = used(await table.acquire('shop/needed', 'app'));
      expect(allows(use.policyId, '/c/39')).toBe(true);
      expect(allows(kept.policyId, '/a/0')).toBe(true);
      expect(table.state('shop/needed')?.state).toBe('ready');
      expect(table.state('shop/unused')).toMatchObject({ state: 'failed', paths: 0 });
      expect(table.state('shop/unused')?.message).toContain('--capacity');
      expect(await table.acquire('shop/unused', 'app')).toMatchObject({ kind: 'failed' });
      use.release();
      expect(used(await table.acquire('shop/unused', 'app')).policyId).toBeGreaterThan(0);
    });

    it('lets nothing give way to what would not fit even then', async () => {
      await table.apply(examplePolicy('used', { app: many('a', 30) }));
      used(await table.acquire('shop/used', 'app'));
      await table.apply(examplePolicy('unused', { app: many('b', 20) }));
      await table.apply(examplePolicy('huge', { app: many('c', 40) }));
      expect(await table.acquire('shop/huge', 'app')).toMatchObject({ kind: 'failed' });
      expect(table.state('shop/unused')?.state).toBe('ready');
      expect(await entryCount(opened.maps)).toBe(50);
    });

    it('keeps what is in force when a change of a policy in use does not fit', async () => {
      await table.apply(examplePolicy('web', { app: many('a', 40) }));
      const use = used(await table.acquire('shop/web', 'app'));
      const state = await table.apply(examplePolicy('web', { app: many('b', 64) }));
      expect(state).toMatchObject({ state: 'failed', paths: 40 });
      expect([allows(use.policyId, '/a/3'), allows(use.policyId, '/b/3')]).toEqual([true, false]);
      expect(await entryCount(opened.maps)).toBe(40);
    });
  });

  it('applies calls for one policy in their order and many policies at once', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `p${i}`);
    await Promise.all(
      names.flatMap((name) =>
        Array.from({ length: 4 }, (_, version) =>
          table.apply(examplePolicy(name, { app: [`/v${version}`, `/${name}`] })),
        ),
      ),
    );
    await table.settled();
    expect(await entryCount(opened.maps)).toBe(100);
    for (const name of names) {
      const { policyId } = used(await table.acquire(`shop/${name}`, 'app'));
      expect([allows(policyId, '/v3'), allows(policyId, `/${name}`), allows(policyId, '/v2')]).toEqual([
        true,
        true,
        false,
      ]);
    }
  });

  describe('after another agent', () => {
    it('goes on with the ids and lists of containers, under whatever the policy says now', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a', '/bin/b'] }));
      const { policyId } = used(await table.acquire('shop/web', 'app'));
      const next = await makeTable();
      await next.apply(examplePolicy('web', { app: ['/bin/b', '/bin/a'] }));
      expect(await entryCount(opened.maps)).toBe(2);
      const heir = next.inherit('shop/web', 'app', policyId);
      expect(heir?.policyId).toBe(policyId);
      await next.dropInherited();
      expect(allows(policyId, '/bin/a')).toBe(true);
      await next.apply(examplePolicy('web', { app: ['/bin/c'] }));
      expect([allows(policyId, '/bin/a'), allows(policyId, '/bin/c')]).toEqual([false, true]);
      await next.settled();
    });

    it('keeps the list of a policy that was removed meanwhile, until its container ends', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }, { mode: 'monitor' }));
      const { policyId } = used(await table.acquire('shop/web', 'app'));
      const next = await makeTable();
      next.complete();
      const heir = next.inherit('shop/web', 'app', policyId);
      await next.dropInherited();
      expect(next.state('shop/web')).toMatchObject({ state: 'retained', mode: 'monitor', paths: 1 });
      expect(allows(policyId, '/bin/a')).toBe(true);
      heir?.release();
      await next.settled();
      expect(await entryCount(opened.maps)).toBe(0);
      expect(next.states().size).toBe(0);
    });

    it('binds starting containers to what it took over, until all policies are told', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const { policyId } = used(await table.acquire('shop/web', 'app'));
      const next = await makeTable();
      expect(await next.acquire('shop/web', 'app')).toEqual({ kind: 'unknown' });
      const heir = next.inherit('shop/web', 'app', policyId);
      await next.dropInherited();
      const started = used(await next.acquire('shop/web', 'app'));
      expect(started.policyId).toBe(policyId);
      expect(allows(policyId, '/bin/a')).toBe(true);
      expect(await next.acquire('shop/web', 'side')).toEqual({ kind: 'unknown' });
      heir?.release();
      started.release();
      const again = used(await next.acquire('shop/web', 'app'));
      expect(again.policyId).toBe(policyId);
      again.release();
      next.complete();
      expect(await next.acquire('shop/web', 'app')).toEqual({ kind: 'unknown' });
      expect([...next.states().keys()]).toEqual(['shop/web']);
      await next.remove('shop/web');
      await next.settled();
      expect(next.states().size).toBe(0);
    });

    it('gives an id to the first container that claims it, and to others of the same rules', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'], side: ['/bin/b'] }));
      const { policyId } = used(await table.acquire('shop/web', 'app'));
      const next = await makeTable();
      await next.apply(examplePolicy('web', { app: ['/bin/a'], side: ['/bin/b'] }));
      expect(next.inherit('shop/web', 'app', policyId)?.policyId).toBe(policyId);
      expect(next.inherit('shop/web', 'side', policyId)).toBeUndefined();
      expect(next.inherit('shop/web', 'app', policyId)?.policyId).toBe(policyId);
      expect(next.inherit('shop/web', 'app', 9_999)).toBeUndefined();
      await next.settled();
    });

    it('drops what nobody claims, and entries that no word refers to', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const key = Buffer.alloc(32);
      key.writeUInt32LE(77_777);
      key.write('/bin/stray', 4);
      opened.maps.allowed[0]?.map.update(key, new Uint8Array(4));
      const next = await makeTable();
      expect(await entryCount(opened.maps)).toBe(1);
      await next.dropInherited();
      await next.settled();
      expect(await entryCount(opened.maps)).toBe(0);
      expect((await opened.maps.policies.entries()).values.every((byte) => byte === 0)).toBe(true);
    });
  });
});

function longPath(length: number): string {
  let path = '';
  while (length - path.length > 202) path += `/${'d'.repeat(200)}`;
  return `${path}/${'f'.repeat(length - path.length - 1)}`;
}
