import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startFakeRuntime } from './fake-runtime.ts';
import type { EventCarrier, FakeRuntime, FakeRuntimeOptions } from './fake-runtime.ts';
import { createNriPlugin } from './plugin.ts';
import type { NriContainer, NriHandlers, NriPlugin, NriPodSandbox } from './plugin.ts';

const CARRIERS: EventCarrier[] = ['dedicated', 'StateChange'];

const pod: NriPodSandbox = {
  ...{
    id: 'p1',
    name: 'web',
    uid: 'u1',
    namespace: 'shop',
    cgroupParent: '/kubepods',
    runtimeHandler: '',
    pid: 7,
  },
  labels: new Map([['runtimeenforcer.kubewarden.io/policy', 'web']]),
  annotations: new Map([['__proto__', 'x']]),
};
const container: NriContainer = {
  ...{
    id: 'c1',
    podSandboxId: 'p1',
    name: 'main',
    state: 'created',
    cgroupsPath: '/kubepods/c1',
    pid: 8,
    image: 'i',
  },
  ...{ labels: new Map(), annotations: new Map(), args: ['/bin/server', ''] },
};

let directory: string;
let socketPath: string;
let stops: (() => Promise<void>)[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nri-plugin-'));
  socketPath = join(directory, 'nri.sock');
  stops = [];
});
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  await rm(directory, { recursive: true });
});

async function runtimeWith(options: Omit<FakeRuntimeOptions, 'socketPath'> = {}): Promise<FakeRuntime> {
  const runtime = await startFakeRuntime({ socketPath, ...options });
  stops.push(() => runtime.close());
  return runtime;
}

function pluginWith(handlers: Partial<NriHandlers> = {}, path = socketPath, firstConnectTimeoutMs = 10_000) {
  const counts = new Map<string, number>();
  const logged: string[] = [];
  const note = (_fields: object, message: string): void => void logged.push(message);
  const plugin: NriPlugin = createNriPlugin({
    ...{ socketPath: path, pluginName: 'runtime-enforcer-agent', pluginIndex: '00', firstConnectTimeoutMs },
    handlers: {
      synchronize: () => Promise.resolve(),
      startContainer: () => Promise.resolve(),
      removeContainer: () => Promise.resolve(),
      ...handlers,
    },
    log: { debug: note, info: note, warn: note, error: note },
    counters: {
      increment(counter, method) {
        const key = method === undefined ? counter : `${counter} ${method}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      },
    },
  });
  stops.push(() => plugin.stop());
  return { plugin, counts, logged };
}

/** A plugin that is in service, and the runtime's view of it. */
async function inService(
  handlers: Partial<NriHandlers> = {},
  options: Omit<FakeRuntimeOptions, 'socketPath'> = {},
) {
  const runtime = await runtimeWith(options);
  const made = pluginWith(handlers);
  const [seen] = await Promise.all([runtime.serve(), made.plugin.start()]);
  return { ...made, runtime, seen };
}

describe('the handshake', () => {
  it('registers, subscribes, takes the whole state and is in service', async () => {
    const taken: unknown[] = [];
    const runtime = await runtimeWith({ name: 'containerd', version: 'v2.1.9', requestTimeoutMs: 3_000 });
    const { plugin, counts } = pluginWith({
      synchronize: (pods, containers, by) => Promise.resolve(void taken.push(pods, containers, by)),
      connected: () => taken.push('connected'),
    });
    const started = plugin.start();
    const seen = await runtime.accept();
    expect([seen.name, seen.index]).toEqual(['runtime-enforcer-agent', '00']);
    expect(await seen.configure()).toBe(0x420);
    expect(plugin.connected).toBe(false);
    await seen.synchronize([pod], [container]);
    await started;
    expect(plugin.connected).toBe(true);
    const by = { name: 'containerd', version: 'v2.1.9', requestTimeoutMs: 3_000 };
    expect(taken).toEqual([[pod], [container], by, 'connected']);
    expect(Object.fromEntries(counts)).toEqual({
      connects: 1,
      'requests Configure': 1,
      'requests Synchronize': 1,
    });
  });

  it('takes a state in parts and acts on the last one only', async () => {
    const sizes: number[][] = [];
    const runtime = await runtimeWith();
    const { plugin } = pluginWith({
      synchronize: (pods, containers) => Promise.resolve(void sizes.push([pods.length, containers.length])),
    });
    const started = plugin.start();
    const seen = await runtime.accept();
    await seen.configure();
    await seen.synchronize(Array<NriPodSandbox>(10).fill(pod), Array<NriContainer>(25).fill(container), 7);
    await started;
    expect(sizes).toEqual([[10, 25]]);
  });

  it('takes a state of several megabytes', async () => {
    const runtime = await runtimeWith();
    let taken = 0;
    const { plugin } = pluginWith({ synchronize: (_, all) => Promise.resolve(void (taken = all.length)) });
    const big = { ...container, annotations: new Map([['a', 'x'.repeat(200_000)]]) };
    await Promise.all([runtime.serve([pod], Array<NriContainer>(18).fill(big)), plugin.start()]);
    expect(taken).toBe(18);
  });

  it.each([
    ['bad name', '00', 'expected letters, digits'],
    ['', '00', 'expected letters, digits'],
    ['good', '0', 'expected two digits'],
    ['good', '100', 'expected two digits'],
  ])('refuses the identity %j %j before connecting', (pluginName, pluginIndex, message) => {
    const { synchronize, startContainer, removeContainer } = {
      ...{ synchronize: () => Promise.resolve(), startContainer: () => Promise.resolve() },
      removeContainer: () => Promise.resolve(),
    };
    const handlers = { synchronize, startContainer, removeContainer };
    const ignore = (): void => undefined;
    const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
    expect(() =>
      createNriPlugin({
        socketPath,
        pluginName,
        pluginIndex,
        handlers,
        log,
        counters: { increment: ignore },
      }),
    ).toThrow(message);
  });

  it('is given up and begun again when the synchronize handler fails', async () => {
    let calls = 0;
    const runtime = await runtimeWith();
    const { plugin, counts } = pluginWith({
      synchronize: () => (++calls === 1 ? Promise.reject(new Error('kernel says no')) : Promise.resolve()),
    });
    const started = plugin.start();
    await expect(runtime.serve()).rejects.toThrow('kernel says no');
    await Promise.all([runtime.serve(), started]);
    expect([counts.get('connects'), counts.get('disconnects'), counts.get('errors Synchronize')]).toEqual([
      2, 1, 1,
    ]);
  });

  it('field case 63: answers a Synchronize that takes too long in time, and lets events wait for it', async () => {
    const order: string[] = [];
    const release = Promise.withResolvers<undefined>();
    const runtime = await runtimeWith({ requestTimeoutMs: 400 });
    const { plugin, counts } = pluginWith({
      async synchronize() {
        await release.promise;
        order.push('synchronized');
      },
      startContainer: () => Promise.resolve(void order.push('started')),
    });
    const started = plugin.start();
    const seen = await runtime.serve();
    expect(plugin.connected).toBe(false);
    await expect(seen.startContainer(pod, container)).rejects.toThrow('no decision within 300 ms');
    const second = seen.startContainer(pod, container);
    release.resolve(undefined);
    await second;
    await started;
    expect(order).toEqual(['synchronized', 'started']);
    expect(counts.get('deadline_exceeded Synchronize')).toBe(1);
  });

  it('field case 63: gives the connection up when a late Synchronize fails', async () => {
    let calls = 0;
    const runtime = await runtimeWith({ requestTimeoutMs: 100 });
    const { plugin } = pluginWith({
      async synchronize() {
        calls += 1;
        if (calls > 1) return;
        await delay(150);
        throw new Error('too late and wrong');
      },
    });
    const started = plugin.start();
    const seen = await runtime.serve();
    await seen.closed;
    await Promise.all([runtime.serve(), started]);
  });
});

describe.each(CARRIERS)('container events by %s', (carrier) => {
  it('reach the handlers with everything the runtime tells', async () => {
    const calls: unknown[] = [];
    const { seen } = await inService({
      startContainer: (...[aPod, aContainer]) => Promise.resolve(void calls.push('start', aPod, aContainer)),
      removeContainer: (aPod, aContainer) => Promise.resolve(void calls.push('remove', aPod, aContainer)),
    });
    await seen.startContainer(pod, container, carrier);
    await seen.removeContainer(pod, container, carrier);
    expect(calls).toEqual(['start', pod, container, 'remove', pod, container]);
  });

  it('refuse a container with the message of the error, and end nothing', async () => {
    const { seen, counts } = await inService({
      startContainer: (_, { name }) =>
        name === 'bad' ? Promise.reject(new Error('policy missing')) : Promise.resolve(),
    });
    await expect(seen.startContainer(pod, { ...container, name: 'bad' }, carrier)).rejects.toThrow(
      'policy missing',
    );
    await seen.startContainer(pod, container, carrier);
    expect(counts.get(`errors ${carrier === 'dedicated' ? 'StartContainer' : carrier}`)).toBe(1);
  });

  it('refuse a container whose handler throws before it returns a promise', async () => {
    const { seen } = await inService({
      startContainer: () => {
        throw new Error('thrown at once');
      },
    });
    await expect(seen.startContainer(pod, container, carrier)).rejects.toThrow('thrown at once');
  });

  it('field case 56: a slow handler is answered with an error before the runtime hangs up', async () => {
    let aborted: unknown;
    const { seen, plugin, counts } = await inService(
      {
        async startContainer(_, { name }, deadline) {
          if (name !== 'slow') return;
          await delay(3_000, undefined, { signal: deadline }).catch(() => undefined);
          aborted = deadline.reason;
        },
      },
      { requestTimeoutMs: 400 },
    );
    const slow = seen.startContainer(pod, { ...container, name: 'slow' }, carrier);
    await expect(slow).rejects.toThrow(
      'container shop/web/slow: no decision within 300 ms, so it was not started; the kubelet tries again',
    );
    expect(aborted).toHaveProperty('name', 'DeadlineExceededError');
    expect(plugin.connected).toBe(true);
    await seen.startContainer(pod, container, carrier);
    expect([...counts].filter(([key]) => key.startsWith('deadline_exceeded'))).toHaveLength(1);
  });

  it('keep to the deadline that a call brings when it is shorter', async () => {
    const { seen, plugin } = await inService(
      { startContainer: () => delay(1_000) },
      { requestTimeoutMs: 10_000, patienceMs: 200 },
    );
    await expect(seen.startContainer(pod, container, carrier)).rejects.toThrow('no decision within 150 ms');
    expect(plugin.connected).toBe(true);
  });

  it('answer a removal in time and without error, whatever its handler does', async () => {
    const { seen, plugin, counts, logged } = await inService(
      {
        removeContainer: (_, { name }) =>
          name === 'slow' ? delay(1_000) : Promise.reject(new Error('unknown')),
      },
      { requestTimeoutMs: 200 },
    );
    await seen.removeContainer(pod, container, carrier);
    await seen.removeContainer(pod, { ...container, name: 'slow' }, carrier);
    expect(plugin.connected).toBe(true);
    expect(logged.filter((message) => message === 'removing a container failed')).toHaveLength(2);
    expect([...counts.keys()].some((key) => key.startsWith('deadline_exceeded'))).toBe(true);
  });
});

describe('other calls', () => {
  it('are answered as unimplemented when unknown, so that the runtime falls back to StateChange', async () => {
    const { seen, counts } = await inService();
    for (const method of ['RunPodSandbox', 'PostStartContainer', 'x'.repeat(1_000)]) {
      await expect(seen.call(method, new Uint8Array())).rejects.toMatchObject({ code: 12 });
    }
    expect(counts.get('requests other')).toBe(3);
  });

  it('with bytes that are no message are answered with an error and end nothing', async () => {
    const { seen, plugin } = await inService();
    for (const method of ['Configure', 'StateChange', 'StartContainer', 'RemoveContainer']) {
      await expect(seen.call(method, Buffer.from([0xff]))).rejects.toThrow('not a valid');
    }
    await expect(seen.call('StartContainer', new Uint8Array())).rejects.toMatchObject({
      code: 3,
      message: 'StartContainer has no pod, expected both pod and container',
    });
    await seen.call('Shutdown', new Uint8Array());
    await seen.call('StateChange', Buffer.from([0x08, 0x63]));
    await seen.startContainer(pod, container);
    expect(plugin.connected).toBe(true);
  });

  it('StartContainer is refused before the state is known', async () => {
    const runtime = await runtimeWith();
    const { plugin } = pluginWith();
    plugin.start().catch(() => undefined);
    const seen = await runtime.accept();
    await expect(seen.startContainer(pod, container)).rejects.toThrow(
      'StartContainer came before Synchronize',
    );
  });
});

describe('the connection', () => {
  it('field cases 60 and 65: is made again after the runtime restarts, with the state of then', async () => {
    const states: number[] = [];
    const events: string[] = [];
    const { plugin, runtime, counts } = await inService({
      synchronize: (_, containers) => Promise.resolve(void states.push(containers.length)),
      connected: () => events.push('connected'),
      disconnected: () => events.push('disconnected'),
    });
    await runtime.close();
    await expect.poll(() => plugin.connected).toBe(false);
    await delay(700);
    const again = await runtimeWith();
    const seen = await again.serve([pod], [container]);
    expect(plugin.connected).toBe(true);
    await seen.startContainer(pod, container);
    expect(states).toEqual([0, 1]);
    expect(events).toEqual(['connected', 'disconnected', 'connected']);
    expect([counts.get('connects'), counts.get('disconnects')]).toEqual([2, 1]);
  });

  it('is made again within a second of a runtime that has been away for long', async () => {
    const { runtime } = await inService();
    await runtime.close();
    await delay(3_000);
    const again = await runtimeWith();
    await again.accept(1_000);
  });

  it('field case 62: is made again whatever the runtime sends', async () => {
    const hostile: ((socket: Socket) => void)[] = [
      (socket) => socket.end(),
      (socket) => socket.end('garbage that is no frame'),
      (socket) => socket.end(Buffer.from('0000000100', 'hex')),
      (socket) => socket.end(Buffer.from('000000010000000a00000004000000010100', 'hex')),
      (socket) => socket.destroy(),
    ];
    const connections = hostile.length;
    const runtime = await runtimeWith({
      takeOver(socket) {
        const act = hostile.shift();
        act?.(socket);
        return act !== undefined;
      },
    });
    const { plugin, counts } = pluginWith();
    const started = plugin.start();
    const seen = await runtime.accept(15_000);
    await seen.configure();
    await seen.synchronize([], []);
    await started;
    expect(counts.get('connects')).toBe(connections + 1);
    expect(counts.get('malformed_frames')).toBe(1);
  });

  it('may be stopped while it waits for a runtime, serves one, or handles a call', async () => {
    const waiting = pluginWith();
    const refused = expect(waiting.plugin.start()).rejects.toThrow('the NRI plugin has been stopped');
    await delay(20);
    await waiting.plugin.stop();
    await refused;

    const entered = Promise.withResolvers<undefined>();
    const { plugin, seen } = await inService({
      async startContainer() {
        entered.resolve(undefined);
        await delay(300);
      },
    });
    const call = expect(seen.startContainer(pod, container)).rejects.toThrow();
    await entered.promise;
    await plugin.stop();
    await call;
    expect(plugin.connected).toBe(false);
    await plugin.stop();
  });

  it('survives callbacks that throw', async () => {
    const fail = (): never => {
      throw new Error('callback');
    };
    const { runtime, seen } = await inService({ connected: fail, disconnected: fail });
    seen.hangUp();
    await (await runtime.serve()).startContainer(pod, container);
  });
});

describe('a first start', () => {
  it('waits for a socket that comes later', async () => {
    const { plugin } = pluginWith();
    const started = plugin.start();
    await delay(400);
    const runtime = await runtimeWith();
    await Promise.all([runtime.serve(), started]);
  });

  it('rejects when its time is over without a socket, naming the path and the remedy', async () => {
    const begun = performance.now();
    await expect(pluginWith({}, '/nonexistent/nri.sock', 700).plugin.start()).rejects.toThrow(
      /^cannot reach the container runtime at NRI socket \/nonexistent\/nri\.sock \(ENOENT\): .*containerd 1\.7.*enable_nri/,
    );
    expect(performance.now() - begun).toBeGreaterThan(690);
  });

  it('says so when the path is a plain file, too long or empty', async () => {
    const file = join(directory, 'plain');
    await writeFile(file, '');
    const starting = (path: string) => expect(pluginWith({}, path, 0).plugin.start()).rejects;
    await starting(file).toThrow(/plain \((ENOTSOCK|ECONNREFUSED)\)/);
    await starting(`/${'x'.repeat(107)}`).toThrow('has 108 bytes, expected 1 to 107');
    await starting('').toThrow('has 0 bytes, expected 1 to 107');
  });

  it('goes on for ever once the socket has been reached, also if nothing else ever worked', async () => {
    let connections = 0;
    const runtime = await runtimeWith({
      takeOver(socket) {
        connections += 1;
        if (connections <= 2) socket.destroy();
        return connections <= 2;
      },
    });
    const { plugin } = pluginWith({}, socketPath, 0);
    await Promise.all([runtime.serve(), plugin.start()]);
    expect(connections).toBe(3);
  });
});
