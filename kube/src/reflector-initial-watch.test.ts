import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type FakeApiServer,
  type FakeRequest,
  fakeObject,
  fakeStatus,
  startFakeApiServer,
} from './fake-api-server.ts';
import { type KubeObject, withoutManagedFields } from './kube-object.ts';
import { objectStore, type ObjectStore } from './object-store.ts';
import { type Reflector, reflector } from './reflector.ts';

const THINGS = { group: '', version: 'v1', plural: 'things' };
const LAST_OF_5 = { resourceVersion: '5', annotations: { 'k8s.io/initial-events-end': 'true' } };

let server: FakeApiServer | undefined;
let running: Reflector | undefined;
afterEach(async () => {
  await running?.stop();
  await server?.stop();
});

/** @param answer gets each watch with its number, from 1 on; lists are not to be asked for */
async function reflect(answer: (request: FakeRequest, watches: number) => void, silenceMs = 5_000) {
  let watches = 0;
  const fake = await startFakeApiServer((request) => {
    if (request.url.searchParams.has('watch')) answer(request, ++watches);
    else request.reply(500, fakeStatus(500, 'InternalError', 'no list was expected'));
  });
  server = fake;
  const changes: string[] = [];
  const store: ObjectStore<KubeObject> = objectStore<KubeObject>({ transform: withoutManagedFields });
  const mine = reflector<KubeObject>({
    ...{ client: fake.client, resource: THINGS, store },
    onChange: ({ type, key }) => changes.push(`${type} ${key}`),
    timings: { backOff: { baseMs: 20, maxMs: 100, jitter: 0 }, silenceMs, stableMs: 1_000 },
  });
  running = mine;
  mine.start();
  return { fake, reflector: mine, store, changes };
}

function sendAll(request: FakeRequest, version: number, ...names: readonly string[]) {
  const send = request.watch();
  for (const name of names) send('ADDED', fakeObject(name, version));
  send('BOOKMARK', {
    metadata: {
      resourceVersion: String(version),
      annotations: { 'k8s.io/initial-events-end': 'true' },
    },
  });
  return send;
}
const isInitial = ({ url }: FakeRequest): boolean => url.searchParams.has('sendInitialEvents');

describe('first objects that come by a watch', () => {
  it.each<[string, (request: FakeRequest) => void]>([
    ['whose connection breaks', (request) => void request.response.destroy()],
    ['which the server ends', (request) => void request.response.end()],
    ['and then nothing', () => undefined],
    ['and then 410', (request) => void request.response.write(`{"type":"ERROR","object":{"code":410}}\n`)],
    ['and then noise', (request) => void request.response.write('<html>\n')],
  ])('are not taken for all before their end is told: half of them %s', async (_, fault) => {
    const {
      reflector: mine,
      store,
      changes,
    } = await reflect((request, watches) => {
      if (watches > 1) {
        sendAll(request, 9, 'a', 'b');
        return;
      }
      request.watch()('ADDED', fakeObject('half', 5));
      setTimeout(() => fault(request), 30);
    }, 300);
    await mine.synced;
    expect(store.get('shop/half')).toBeUndefined();
    expect(changes).toEqual(['added shop/a', 'added shop/b']);
  });

  it('are transformed as they come, so that nobody holds them whole until the last', async () => {
    let end: (() => void) | undefined;
    const fake = await startFakeApiServer((request) => {
      const send = request.watch();
      for (const name of ['a', 'refused', 'a']) send('ADDED', fakeObject(name, 5));
      end = () => send('BOOKMARK', { metadata: LAST_OF_5 });
    });
    server = fake;
    const transformed: string[] = [];
    const refused: string[] = [];
    const store = objectStore<string>({
      transform({ metadata: { name } }) {
        transformed.push(name);
        if (name === 'refused') throw new Error('no');
        return name.toUpperCase();
      },
      onRefused: ({ metadata: { name } }) => refused.push(name),
    });
    const mine = reflector<string>({
      ...{ client: fake.client, resource: THINGS, store, onChange: () => undefined },
    });
    running = mine;
    mine.start();
    await vi.waitFor(() => expect(transformed).toEqual(['a', 'refused', 'a']));
    expect([store.size, refused]).toEqual([0, []]);
    end?.();
    await mine.synced;
    expect([...store.entries()]).toEqual([['shop/a', 'A']]);
    expect(refused).toEqual(['refused']);
    expect(transformed).toHaveLength(3);
  });

  it('asked for again after 410, delete nothing while they are under way', async () => {
    let whole: (() => void) | undefined;
    const {
      reflector: mine,
      store,
      changes,
    } = await reflect((request, watches) => {
      if (watches === 1) {
        const send = sendAll(request, 5, 'a', 'b');
        setTimeout(() => send('ERROR', fakeStatus(410, 'Expired')), 30);
      } else if (watches < 4) {
        request.watch()('ADDED', fakeObject('b', 5));
        setTimeout(() => request.response.destroy(), 20);
      } else {
        expect(isInitial(request)).toBe(true);
        whole = () => sendAll(request, 9, 'b', 'c');
      }
    });
    await vi.waitFor(() => expect(whole).toBeDefined(), { timeout: 5_000 });
    expect([...store.entries()].map(([key]) => key)).toEqual(['shop/a', 'shop/b']);
    whole?.();
    await vi.waitFor(() =>
      expect(changes.toSorted()).toEqual([
        'added shop/a',
        'added shop/b',
        'added shop/c',
        'deleted shop/a',
        'updated shop/b',
      ]),
    );
    expect(mine.counters().gone).toBe(1);
  });

  it('that are never given are asked for at the pace of a server in trouble', async () => {
    const { fake, reflector: mine } = await reflect((request) =>
      request.reply(410, fakeStatus(410, 'Expired')),
    );
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(fake.requests.length).toBeGreaterThan(4);
    // Waits of 20, 40, 80, 100, 100, … ms.
    expect(fake.requests.length).toBeLessThan(14);
    expect(mine.counters()).toMatchObject({ lists: 0 });
  });
});

it('holds what is there in the end behind a server that fails at random', async () => {
  const wanted = new Map<string, number>();
  let version = 10;
  let seed = 7;
  const chance = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
  const history: { version: number; type: string; object: unknown }[] = [];
  let flaps = true;
  const senders = new Map<FakeRequest, (type: string, object: unknown) => void>();
  const { store, reflector: mine } = await reflect((request) => {
    const luck = flaps ? chance() : 1;
    if (luck < 0.15) {
      request.response.destroy();
      return;
    }
    const code = luck < 0.2 ? 500 : luck < 0.3 ? 503 : luck < 0.4 ? 410 : luck < 0.5 ? 429 : 200;
    if (code !== 200) {
      request.reply(code, fakeStatus(code, 'Injected'));
      return;
    }
    const since = Number(request.url.searchParams.get('resourceVersion') ?? 0);
    const send = isInitial(request) ? sendAll(request, version, ...wanted.keys()) : request.watch();
    if (!isInitial(request)) {
      for (const each of history) if (each.version > since) send(each.type, each.object);
    }
    senders.set(request, send);
    request.response.on('close', () => senders.delete(request));
    if (flaps) setTimeout(() => request.response.destroy(), chance() * 60);
  });
  for (let round = 0; round < 60; round++) {
    const name = `t${Math.floor(chance() * 12)}`;
    version++;
    const type = !wanted.has(name) ? 'ADDED' : chance() < 0.4 ? 'DELETED' : 'MODIFIED';
    if (type === 'DELETED') wanted.delete(name);
    else wanted.set(name, version);
    const event = { version, type, object: fakeObject(name, version) };
    history.push(event);
    for (const send of senders.values()) send(event.type, event.object);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  flaps = false;
  for (const request of senders.keys()) request.response.destroy();
  await vi.waitFor(
    () =>
      expect([...store.entries()].map(([key]) => key).toSorted()).toEqual(
        [...wanted.keys()].map((name) => `shop/${name}`).toSorted(),
      ),
    { timeout: 5_000 },
  );
  expect(mine.counters().failures).toBeGreaterThan(5);
});
