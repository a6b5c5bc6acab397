import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { EventCarrier } from './fake-runtime.ts';
import { sampleContainer as container, samplePod as pod, usePluginFixture } from './plugin-fixture.ts';

const CARRIERS: EventCarrier[] = ['dedicated', 'StateChange'];

const { runtimeWith, pluginWith, inService } = usePluginFixture();

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
