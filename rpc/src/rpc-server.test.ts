import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { CertifiedKey } from '@runtime-enforcer/certs/authority';
import type { KeyPair } from '@runtime-enforcer/certs/key-pair';
import { SILENT_HANDLERS, startTestServer, testAuthority, testPair, testStore } from './rpc-fixture.ts';
import { InvalidRequestError } from './rpc-server.ts';

type TestServer = Awaited<ReturnType<typeof startTestServer>>;

let authority: CertifiedKey;
let other: CertifiedKey;
let controller: KeyPair;
let debuggers: KeyPair;
let running: TestServer | undefined;

beforeAll(async () => {
  authority = await testAuthority();
  other = await testAuthority();
  controller = await testPair(authority, 'controller');
  debuggers = await testPair(authority, 'debugger');
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
});

async function start(options: Parameters<typeof startTestServer>[1] = {}): Promise<TestServer> {
  running = await startTestServer(authority, options);
  return running;
}

describe('who may call', () => {
  it('answers the controller its methods and no other', async () => {
    const client = (await start()).client(controller);
    await expect(client.acknowledge({})).resolves.toEqual({
      violationsAccepted: true,
      observationsAccepted: false,
    });
    await expect(client.listPoliciesStatus()).resolves.toEqual(new Map());
    await expect(client.isServing()).resolves.toBe(true);
    await expect(client.listPods().next()).rejects.toMatchObject({
      problem: 'forbidden',
      message: expect.stringMatching(/controller may not call .*ListPods: .*DNS name debugger/) as string,
    });
  });

  it('answers the debugger its methods and no other', async () => {
    const client = (await start()).client(debuggers);
    await expect(client.listPods().next()).resolves.toMatchObject({ done: true });
    await expect(client.listPoliciesStatus()).resolves.toEqual(new Map());
    await expect(client.acknowledge({})).rejects.toMatchObject({ problem: 'forbidden' });
    const { value } = await client.watch({ signal: AbortSignal.timeout(5_000) }).next();
    expect(value).toMatchObject({ kind: 'lost', error: { problem: 'forbidden' } });
  });

  it('tells a client of another name why it may call nothing, and says so', async () => {
    const { client, log } = await start();
    const collector = client(await testPair(authority, 'collector'));
    await expect(collector.listPoliciesStatus()).rejects.toMatchObject({
      problem: 'forbidden',
      message: expect.stringMatching(/DNS:collector.* may not call .*ListPoliciesStatus/) as string,
    });
    expect(log.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', message: expect.stringMatching(/client refused/) as string }),
    );
  });

  it.each([
    ['a name in the subject only', { commonName: 'controller', dnsNames: [] }],
    ['a wildcard', { dnsNames: ['*'] }],
    ['a name below ours', { dnsNames: ['controller.evil.example'] }],
    ['an address', { ipAddresses: ['127.0.0.1'], dnsNames: [] }],
  ])('takes %s for no client of ours', async (_, request) => {
    const client = (await start()).client(await testPair(authority, 'unused', request));
    await expect(client.listPoliciesStatus()).rejects.toMatchObject({ problem: 'forbidden' });
  });

  it('refuses a certificate of another authority, and counts it', async () => {
    const { client, server } = await start();
    const foreign = client(await testPair(other, 'controller', { trusts: authority }));
    await expect(foreign.listPoliciesStatus()).rejects.toMatchObject({ problem: 'unreachable' });
    await vi.waitFor(() => expect(server.counters.handshakesFailed).toBeGreaterThan(0));
    expect(server.counters.accepted).toBe(0);
  });

  it('refuses a certificate that has ended', async () => {
    const { client, server } = await start();
    const ended = await testPair(authority, 'controller', {
      now: new Date(Date.now() - 120_000),
      validForMs: 60_000,
    });
    await expect(client(ended).listPoliciesStatus()).rejects.toMatchObject({ problem: 'unreachable' });
    expect(server.counters.accepted).toBe(0);
  });

  it('refuses a certificate that is for servers only', async () => {
    const { client } = await start();
    const pair = await testPair(authority, 'controller', { usages: ['server'] });
    await expect(client(pair).listPoliciesStatus()).rejects.toMatchObject({ problem: 'unreachable' });
  });

  it('is refused by a client that expects another agent, or trusts another authority', async () => {
    const { client } = await start();
    await expect(client(controller, { podName: 'agent-2' }).listPoliciesStatus()).rejects.toMatchObject({
      problem: 'unreachable',
      message: expect.stringMatching(
        /is for DNS:agent-1\.enforcer; expected DNS:agent-2\.enforcer/,
      ) as string,
    });
    const distrustful = await testPair(authority, 'controller', { trusts: other });
    await expect(client(distrustful).listPoliciesStatus()).rejects.toMatchObject({
      problem: 'unreachable',
    });
  });

  it('is taken by a client that expects the name that all agents have', async () => {
    const { client, store } = await start();
    store.replace(await testPair(authority, 'release-agent'));
    const shared = { podName: 'agent-2', serverName: 'release-agent' };
    await expect(client(controller, shared).listPoliciesStatus()).resolves.toEqual(new Map());
    const another = { serverName: 'another-agent' };
    await expect(client(controller, another).listPoliciesStatus()).rejects.toMatchObject({
      problem: 'unreachable',
      message: expect.stringMatching(/is for DNS:release-agent; expected DNS:another-agent/) as string,
    });
  });

  it('stops serving a connection whose certificate has ended meanwhile', async () => {
    const { client } = await start();
    const brief = client(await testPair(authority, 'controller', { validForMs: 3_000 }));
    await expect(brief.listPoliciesStatus()).resolves.toEqual(new Map());
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    await expect(brief.listPoliciesStatus()).rejects.toMatchObject({
      problem: 'forbidden',
      message: expect.stringMatching(/the certificate of controller ended at/) as string,
    });
  });
});

describe('certificates that are replaced', () => {
  it('shows new connections the new certificate, and keeps the old connections', async () => {
    const { client, store } = await start();
    const before = client(controller);
    await before.isServing();
    store.replace(await testPair(authority, 'agent-2.enforcer'));
    await expect(before.isServing()).resolves.toBe(true);
    await expect(client(controller, { podName: 'agent-2' }).isServing()).resolves.toBe(true);
    await expect(client(controller).isServing()).rejects.toMatchObject({ problem: 'unreachable' });
  });

  it('ends connections that an authority vouched for which is trusted no more', async () => {
    const { client, store, server } = await start();
    const before = client(controller);
    await before.isServing();
    store.replace(await testPair(authority, 'agent-1.enforcer', { trusts: other }));
    await vi.waitFor(() => expect(before.isServing()).rejects.toMatchObject({ problem: 'unreachable' }));
    const after = client(await testPair(other, 'controller', { trusts: authority }));
    await expect(after.isServing()).resolves.toBe(true);
    expect(server.counters.accepted).toBe(2);
  });

  it('takes its own new certificate for the next connection', async () => {
    const { server, client: connect } = await start();
    const certificates = testStore(await testPair(other, 'controller', { trusts: authority }));
    const client = connect(controller, { certificates });
    await expect(client.isServing()).rejects.toMatchObject({ problem: 'unreachable' });
    const { accepted } = server.counters;
    expect(accepted).toBe(0);
    certificates.replace(controller);
    await vi.waitFor(() => expect(client.isServing()).resolves.toBe(true), { timeout: 10_000 });
    // On a busy machine a connection may be made twice.
    expect(server.counters.accepted - accepted).toBeGreaterThan(0);
  });
});

describe('what fails inside', () => {
  it('tells a wrong request, hides an error of ours, and goes on', async () => {
    const { client, log } = await start({
      handlers: {
        ...SILENT_HANDLERS,
        listPods() {
          throw new InvalidRequestError('page_token: "x" is not a page');
        },
        listPoliciesStatus() {
          throw new Error('secret');
        },
        watch: () => Promise.reject(new Error('secret')),
      },
    });
    await expect(client(debuggers).listPods().next()).rejects.toThrow('page_token: "x" is not a page');
    await expect(client(controller).listPoliciesStatus()).rejects.toThrow('failed to answer: see its log');
    const { value } = await client(controller)
      .watch({ signal: AbortSignal.timeout(5_000) })
      .next();
    expect(value).toMatchObject({ kind: 'lost', error: { problem: 'incompatible' } });
    expect(log.lines.filter(({ level }) => level === 'error')).toHaveLength(2);
    await expect(client(controller).isServing()).resolves.toBe(true);
  });
});

describe('health', () => {
  it('says what it was told, of this service and the whole server', async () => {
    const { client, server } = await start();
    const caller = client(controller);
    await expect(caller.isServing()).resolves.toBe(true);
    server.setServing(false);
    await expect(caller.isServing()).resolves.toBe(false);
  });
});
