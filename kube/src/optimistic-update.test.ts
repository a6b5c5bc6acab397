import { describe, expect, it, onTestFinished } from 'vitest';
import { type FakeRequest, fakeObject, fakeStatus, startFakeApiServer } from './fake-api-server.ts';
import { optimisticUpdate } from './optimistic-update.ts';

const reference = { resource: { group: '', version: 'v1', plural: 'things' }, namespace: 'shop', name: 'a' };

async function fake(answer: (request: FakeRequest) => void) {
  const server = await startFakeApiServer(answer);
  onTestFinished(async () => await server.stop());
  return server;
}

describe('optimisticUpdate', () => {
  it('reads, changes and writes; again when another write came first', async () => {
    let version = 1;
    let writes = 0;
    const server = await fake(({ method, body, reply }) => {
      if (method === 'GET') {
        reply(200, fakeObject('a', version, { count: version }));
        return;
      }
      if (++writes < 3) version++;
      const sent = JSON.parse(body) as ReturnType<typeof fakeObject>;
      if (sent.metadata.resourceVersion !== String(version)) reply(409, fakeStatus(409, 'Conflict'));
      else reply(200, sent);
    });
    const written = await optimisticUpdate({
      client: server.client,
      reference,
      change: (current) => ({ ...current, count: (current['count'] as number) * 10 }),
    });
    expect(written['count']).toBe(30);
    expect(writes).toBe(3);
  });

  it('writes the subresource, from a known object, without a read', async () => {
    const server = await fake(({ body, reply }) => reply(200, JSON.parse(body)));
    await optimisticUpdate({
      client: server.client,
      reference: { ...reference, subresource: 'status' },
      known: fakeObject('a', 1),
      change: (current) => ({ ...current, status: 1 }),
    });
    expect(server.requests).toEqual(['PUT /api/v1/namespaces/shop/things/a/status']);
  });

  it('writes nothing when nothing is to be changed', async () => {
    const server = await fake(({ reply }) => reply(200, fakeObject('a', 1)));
    await optimisticUpdate({ client: server.client, reference, change: () => undefined });
    expect(server.requests).toEqual(['GET /api/v1/namespaces/shop/things/a']);
  });

  it('tells when there is no such object, and when others always come first', async () => {
    const server = await fake(({ method, url, reply }) => {
      if (url.pathname.endsWith('b')) reply(404, fakeStatus(404, 'NotFound'));
      else if (method === 'GET') reply(200, fakeObject('a', 1));
      else reply(409, fakeStatus(409, 'Conflict'));
    });
    const { client } = server;
    await expect(
      optimisticUpdate({ client, reference: { ...reference, name: 'b' }, change: (current) => current }),
    ).rejects.toThrow('404');
    await expect(optimisticUpdate({ client, reference, change: (current) => current })).rejects.toThrow(
      'things shop/a: changed by others during each of 8 attempts',
    );
  });
});
