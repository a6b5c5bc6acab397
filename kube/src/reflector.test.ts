import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type FakeApiServer,
  type FakeRequest,
  fakeObject,
  fakeStatus,
  startFakeApiServer,
} from './fake-api-server.ts';
import { type KubeObject, withoutManagedFields } from './kube-object.ts';
import { objectStore, type StoreChange } from './object-store.ts';
import { type Reflector, type ReflectorOptions, type ReflectorTimings, reflector } from './reflector.ts';

const THINGS = { group: '', version: 'v1', plural: 'things' };
const FAST: Partial<ReflectorTimings> = {
  backOff: { baseMs: 20, maxMs: 200, jitter: 0 },
  silenceMs: 5_000,
  stableMs: 1_000,
};

let server: FakeApiServer | undefined;
let running: Reflector | undefined;
afterEach(async () => {
  await running?.stop();
  await server?.stop();
});

async function reflect(
  answer: (request: FakeRequest, watches: number) => void,
  options: Partial<ReflectorOptions<KubeObject, never>> = {},
) {
  let watches = 0;
  const fake = await startFakeApiServer((request) => {
    if (request.url.searchParams.has('watch')) watches++;
    answer(request, watches);
  });
  server = fake;
  const changes: string[] = [];
  const troubles: string[] = [];
  const store = objectStore<KubeObject>({ transform: withoutManagedFields });
  const mine = reflector<KubeObject>({
    client: fake.client,
    resource: THINGS,
    store,
    onChange: ({ type, key, value }: StoreChange<KubeObject>) =>
      changes.push(`${type} ${key} ${value.metadata.resourceVersion ?? ''}`),
    onTrouble: (error) => troubles.push((error as Error).message),
    initial: 'list',
    ...options,
    timings: { ...FAST, ...options.timings },
  });
  running = mine;
  mine.start();
  return { fake, reflector: mine, store, changes, troubles };
}

const listOf = (version: number, ...items: unknown[]) => ({
  metadata: { resourceVersion: String(version) },
  items,
});
const bookmark = (version: number, end = false) => ({
  metadata: {
    resourceVersion: String(version),
    ...(end && { annotations: { 'k8s.io/initial-events-end': 'true' } }),
  },
});

describe('reflector', () => {
  it('lists in pages, then watches from the version of the list', async () => {
    const {
      fake,
      reflector: mine,
      changes,
    } = await reflect((request) => {
      const token = request.url.searchParams.get('continue');
      if (request.url.searchParams.has('watch')) {
        const send = request.watch();
        send('MODIFIED', fakeObject('a', 11));
        send('DELETED', fakeObject('b', 12));
      } else if (token === null) {
        request.reply(200, {
          metadata: { resourceVersion: '10', continue: 'more' },
          items: [fakeObject('a', 1)],
        });
      } else request.reply(200, listOf(10, fakeObject('b', 2)));
    });
    await mine.synced;
    await vi.waitFor(() => expect(changes).toHaveLength(4));
    expect(changes).toEqual(['added shop/a 1', 'added shop/b 2', 'updated shop/a 11', 'deleted shop/b 2']);
    expect(fake.requests[0]).toBe('GET /api/v1/things?limit=500');
    expect(fake.requests[1]).toBe('GET /api/v1/things?limit=500&continue=more');
    expect(fake.requests[2]).toMatch(
      /allowWatchBookmarks=true&timeoutSeconds=\d+&resourceVersion=10&watch=true$/,
    );
  });

  it('takes the first objects from a watch where that is served', async () => {
    const {
      fake,
      reflector: mine,
      store,
      changes,
    } = await reflect(
      (request) => {
        const send = request.watch();
        send('ADDED', fakeObject('a', 1));
        send('ADDED', fakeObject('b', 2));
        send('BOOKMARK', bookmark(5, true));
        send('MODIFIED', fakeObject('a', 6));
      },
      { initial: 'watch' },
    );
    await mine.synced;
    await vi.waitFor(() => expect(changes).toHaveLength(3));
    expect(store.size).toBe(2);
    expect(fake.requests).toHaveLength(1);
    expect(fake.requests[0]).toContain('sendInitialEvents=true&resourceVersionMatch=NotOlderThan');
  });

  it('falls back to pages where it is not', async () => {
    const { fake, reflector: mine } = await reflect(
      (request) => {
        if (request.url.searchParams.has('sendInitialEvents')) {
          request.reply(422, fakeStatus(422, 'Invalid', 'sendInitialEvents is forbidden'));
        } else if (request.url.searchParams.has('watch')) request.watch();
        else request.reply(200, listOf(10, fakeObject('a', 1)));
      },
      { initial: 'watch' },
    );
    await mine.synced;
    await vi.waitFor(() => expect(fake.requests).toHaveLength(3));
    expect(mine.counters()).toMatchObject({ lists: 1, failures: 0 });
  });

  it.each([
    ['an answer', (request: FakeRequest) => request.reply(410, fakeStatus(410, 'Expired'))],
    ['an event', (request: FakeRequest) => request.watch()('ERROR', fakeStatus(410, 'Expired'))],
  ])('410 as %s: lists again and tells only what differs', async (_, gone) => {
    let lists = 0;
    const { reflector: mine, changes } = await reflect((request, watches) => {
      if (!request.url.searchParams.has('watch')) {
        lists++;
        request.reply(
          200,
          lists === 1
            ? listOf(10, fakeObject('a', 1), fakeObject('b', 2), fakeObject('c', 3))
            : listOf(20, fakeObject('a', 1), fakeObject('b', 15)),
        );
      } else if (watches === 1) gone(request);
      else request.watch();
    });
    await vi.waitFor(() => expect(changes).toHaveLength(5));
    expect(changes.slice(3)).toEqual(['deleted shop/c 3', 'updated shop/b 15']);
    expect(mine.counters()).toMatchObject({ lists: 2, gone: 1, failures: 0 });
  });

  it('goes on where it was when the connection breaks, without a list', async () => {
    const { fake, changes } = await reflect((request, watches) => {
      if (!request.url.searchParams.has('watch')) request.reply(200, listOf(10));
      else {
        const send = request.watch();
        send('ADDED', fakeObject(`w${watches}`, 10 + watches));
        if (watches === 1) setTimeout(() => request.response.destroy(), 20);
      }
    });
    await vi.waitFor(() => expect(changes).toEqual(['added shop/w1 11', 'added shop/w2 12']));
    expect(fake.requests.filter((request) => !request.includes('watch'))).toHaveLength(1);
    expect(fake.requests.at(-1)).toContain('resourceVersion=11&');
  });

  it('a bookmark moves the version on', async () => {
    const { fake } = await reflect((request, watches) => {
      if (!request.url.searchParams.has('watch')) request.reply(200, listOf(10));
      else {
        request.watch()('BOOKMARK', bookmark(99));
        if (watches === 1) setTimeout(() => request.response.end(), 20);
      }
    });
    await vi.waitFor(() => expect(fake.requests).toHaveLength(3));
    expect(fake.requests[2]).toContain('resourceVersion=99&');
  });

  it('gives a silent watch up at its own deadline', async () => {
    const { reflector: mine, troubles } = await reflect(
      (request) => {
        if (!request.url.searchParams.has('watch')) request.reply(200, listOf(10));
        else request.watch();
      },
      { timings: { silenceMs: 100 } },
    );
    await vi.waitFor(() => expect(mine.counters().silences).toBeGreaterThan(1), { timeout: 5_000 });
    expect(troubles[0]).toBe('watch of /api/v1/things: nothing came for 100 ms');
  });

  it.each<[string, (request: FakeRequest) => void]>([
    [
      'closes every watch at once',
      (request) => {
        request.watch();
        request.response.end();
      },
    ],
    ['answers every watch with 500', (request) => request.reply(500, fakeStatus(500, 'InternalError'))],
    ['answers every watch with 410', (request) => request.reply(410, fakeStatus(410, 'Expired'))],
    ['sends no JSON', (request) => void request.response.end('<html>\n')],
    ['sends events without an object', (request) => void request.response.end('{"type":"ADDED"}\n')],
    ['resets every connection', (request) => void request.response.destroy()],
  ])('never loops hot when the server %s', async (_, answer) => {
    const { fake } = await reflect((request) => {
      if (request.url.searchParams.has('watch')) answer(request);
      else request.reply(200, listOf(10));
    });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    // Waits of 20, 40, 80, 160, 200, 200, … ms: nine tries in the second, twice as many requests with lists.
    expect(fake.requests.length).toBeGreaterThan(4);
    expect(fake.requests.length).toBeLessThan(22);
  });

  it('waits as long as the server asks', async () => {
    const { fake } = await reflect((request) => {
      request.reply(429, fakeStatus(429, 'TooManyRequests'), { 'retry-after': '1' });
    });
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(fake.requests).toHaveLength(1);
    await vi.waitFor(() => expect(fake.requests).toHaveLength(2), { timeout: 2_000 });
  });

  it('an object made anew under its name is deleted and added', async () => {
    const again = { ...fakeObject('a', 11), metadata: { ...fakeObject('a', 11).metadata, uid: 'other' } };
    const { changes } = await reflect((request) => {
      if (request.url.searchParams.has('watch')) request.watch()('MODIFIED', again);
      else request.reply(200, listOf(10, fakeObject('a', 1)));
    });
    await vi.waitFor(() => expect(changes).toHaveLength(3));
    expect(changes).toEqual(['added shop/a 1', 'deleted shop/a 1', 'added shop/a 11']);
  });

  it('counts what onChange throws, and goes on', async () => {
    const seen: string[] = [];
    const { reflector: mine, troubles } = await reflect(
      (request) => {
        if (request.url.searchParams.has('watch')) request.watch()('ADDED', fakeObject('b', 11));
        else request.reply(200, listOf(10, fakeObject('a', 1)));
      },
      {
        onChange: ({ key }) => {
          seen.push(key);
          throw new Error('handler');
        },
      },
    );
    await vi.waitFor(() => expect(seen).toEqual(['shop/a', 'shop/b']));
    expect(mine.counters()).toMatchObject({ handlerErrors: 2, failures: 0, watches: 1 });
    expect(troubles).toEqual(['handler', 'handler']);
  });

  it('compares everything again after its resync time', async () => {
    let lists = 0;
    const { changes } = await reflect(
      (request) => {
        if (request.url.searchParams.has('watch')) {
          request.watch();
          setTimeout(() => request.response.end(), 30);
        } else
          request.reply(200, ++lists === 1 ? listOf(10, fakeObject('a', 1)) : listOf(11, fakeObject('a', 2)));
      },
      { timings: { resyncMs: 60 } },
    );
    await vi.waitFor(() => expect(changes.at(-1)).toBe('updated shop/a 2'));
    expect(changes).toHaveLength(2);
  });

  it('stops at once, whatever it is doing, and asks nothing afterwards', async () => {
    const { fake, reflector: mine } = await reflect((request) => {
      if (request.url.searchParams.has('watch')) request.watch();
      else request.reply(200, listOf(10));
    });
    await mine.synced;
    await mine.stop();
    const before = fake.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(fake.requests).toHaveLength(before);
  });

  it('lets other work run while thousands of events come', async () => {
    const { store } = await reflect((request) => {
      if (!request.url.searchParams.has('watch')) {
        request.reply(200, listOf(10));
        return;
      }
      const send = request.watch();
      for (let index = 0; index < 20_000; index++)
        send('ADDED', fakeObject(`n${index}`, 11 + index, { x: 'y'.repeat(200) }));
    });
    let longest = 0;
    let last = performance.now();
    const ticker = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 5);
    await vi.waitFor(() => expect(store.size).toBeGreaterThan(0), { timeout: 10_000, interval: 5 });
    longest = 0;
    await vi.waitFor(() => expect(store.size).toBe(20_000), { timeout: 10_000 });
    clearInterval(ticker);
    expect(longest).toBeLessThan(250);
  });
});
