import { writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createNriPlugin } from './plugin.ts';
import type { NriContainer, NriPodSandbox } from './plugin.ts';
import { usePluginFixture, sampleContainer as container, samplePod as pod } from './plugin-fixture.ts';

const { path, runtimeWith, pluginWith, inService } = usePluginFixture();

describe('taking everything over once more', () => {
  it('is done by a second connection, and the first one answers until the second is in service', async () => {
    const taken: number[] = [];
    const started: string[] = [];
    const runtime = await runtimeWith();
    const { plugin, counts } = pluginWith({
      synchronize: (_, all) => Promise.resolve(void taken.push(all.length)),
      startContainer: (_, { id }) => Promise.resolve(void started.push(id)),
      connected: () => taken.push(-1),
      disconnected: () => taken.push(-2),
    });
    const starting = plugin.start();
    const first = await runtime.accept();
    await first.configure();
    await first.synchronize([pod], []);
    await starting;
    const again = plugin.resynchronize();
    const second = await runtime.accept();
    await second.configure();
    await first.startContainer(pod, { ...container, id: 'by-first' });
    await second.synchronize([pod], [container]);
    await again;
    await second.startContainer(pod, { ...container, id: 'by-second' });
    expect(started).toEqual(['by-first', 'by-second']);
    await first.closed;
    expect(plugin.connected).toBe(true);
    expect(taken).toEqual([0, -1, 1]);
    second.hangUp();
    await expect.poll(() => taken.at(-1)).toBe(-2);
    expect(counts.get('connects')).toBe(2);
    await expect.poll(() => counts.get('disconnects')).toBe(2);
  });

  it('counts the end of each connection once, however often they replace each other', async () => {
    const runtime = await runtimeWith();
    const { plugin, counts } = pluginWith();
    const [first] = await Promise.all([runtime.serve(), plugin.start()]);
    const [second] = await Promise.all([runtime.serve(), plugin.resynchronize()]);
    const [third] = await Promise.all([runtime.serve(), plugin.resynchronize()]);
    await Promise.all([first.closed, second.closed]);
    third.hangUp();
    await expect.poll(() => plugin.connected, { timeout: 5_000 }).toBe(false);
    expect([counts.get('connects'), counts.get('disconnects')]).toEqual([3, 3]);
  });

  it('leaves the first connection in service when the second one fails', async () => {
    const runtime = await runtimeWith();
    const { plugin } = pluginWith({});
    const starting = plugin.start();
    const first = await runtime.accept();
    await first.configure();
    await first.synchronize([], []);
    await starting;
    const again = plugin.resynchronize();
    const outcome = expect(again).rejects.toThrow();
    (await runtime.accept()).hangUp();
    await outcome;
    expect(plugin.connected).toBe(true);
    await first.startContainer(pod, container);
  });
});

describe('the handshake', () => {
  it('asks for no refusal of what is answered late where that is to fail open', async () => {
    const runtime = await runtimeWith();
    const { plugin } = pluginWith({}, { failOpen: true });
    const started = plugin.start();
    const seen = await runtime.accept();
    const failurePolicy = { failRequest: false, keepConnected: true };
    expect(await seen.configure()).toEqual({ events: 0x420, failurePolicy });
    await seen.synchronize([], []);
    await started;
  });

  it('ends a connection after the answers that the runtime waits for', async () => {
    const going = Promise.withResolvers<undefined>();
    const asked = Promise.withResolvers<undefined>();
    const { plugin, seen } = await inService({
      startContainer() {
        asked.resolve(undefined);
        return going.promise;
      },
    });
    const starting = seen.startContainer(pod, container);
    await asked.promise;
    const stopped = plugin.stop();
    going.resolve(undefined);
    await expect(starting).resolves.toBeUndefined();
    await stopped;
    await seen.closed;
  });

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
    // A runtime that can choose refuses what the plugin answers late, and keeps the plugin.
    const failurePolicy = { failRequest: true, keepConnected: true };
    expect(await seen.configure()).toEqual({ events: 0x420, failurePolicy });
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
    const ignore = (): void => undefined;
    const done = (): Promise<void> => Promise.resolve();
    expect(() =>
      createNriPlugin({
        socketPath: path('nri.sock'),
        pluginName,
        pluginIndex,
        failOpen: false,
        handlers: { synchronize: done, startContainer: done, removeContainer: done },
        log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
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
    // On a busy machine a shorter time is over before the plugin could answer within its budget.
    const runtime = await runtimeWith({ requestTimeoutMs: 1_000 });
    const { plugin } = pluginWith({
      async synchronize() {
        calls += 1;
        if (calls > 1) return;
        await delay(1_500);
        throw new Error('too late and wrong');
      },
    });
    const started = plugin.start();
    const seen = await runtime.serve();
    await seen.closed;
    await Promise.all([runtime.serve(), started]);
  });
});

describe('the connection', () => {
  afterEach(() => void vi.useRealTimers());

  it('is given up and made again when the runtime does not finish the handshake', async () => {
    let silent = 0;
    const runtime = await runtimeWith({ takeOver: () => ++silent === 1 });
    const { plugin } = pluginWith();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const started = plugin.start();
    await vi.waitUntil(() => vi.getTimerCount() > 0 && silent === 1);
    await vi.advanceTimersByTimeAsync(30_000);
    vi.useRealTimers();
    await Promise.all([runtime.serve(), started]);
  });

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
      startContainer() {
        entered.resolve(undefined);
        return new Promise(() => undefined);
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
    await expect(
      pluginWith({}, { socketPath: '/nonexistent/nri.sock', firstConnectTimeoutMs: 700 }).plugin.start(),
    ).rejects.toThrow(
      /^cannot reach the container runtime at NRI socket \/nonexistent\/nri\.sock \(ENOENT\): .*containerd 1\.7.*enable_nri/,
    );
    expect(performance.now() - begun).toBeGreaterThan(690);
  });

  it('says so when the path is a plain file, too long or empty', async () => {
    const file = path('plain');
    await writeFile(file, '');
    const starting = (socketPath: string) =>
      expect(pluginWith({}, { socketPath, firstConnectTimeoutMs: 0 }).plugin.start()).rejects;
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
    const { plugin } = pluginWith({}, { socketPath: path('nri.sock'), firstConnectTimeoutMs: 0 });
    await Promise.all([runtime.serve(), plugin.start()]);
    expect(connections).toBe(3);
  });
});
