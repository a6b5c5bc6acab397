import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createNriPlugin,
  type NriContainer,
  type NriHandlers,
  type NriPlugin,
  type NriPodSandbox,
} from '@runtime-enforcer/agent/nri/plugin';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { printProgress } from '../vm/progress.ts';
import { type NriRuntime, type NriRuntimeOptions, startNriRuntime, type Told } from './nri-runtime.ts';
import { NRI_MODULES, nriRuntimeBinary, type NriVersion } from './nri-runtime-binary.ts';

/** NRI splits a message that is larger than this. */
const MESSAGE_MAX_BYTES = 4 * 1_048_576;
const BUILD_BUDGET_MS = 300_000;
const SHORT_TIMEOUT_MS = 400;
/** What no Kubernetes would let into a name, and a runtime may tell all the same. */
const SUFFIX = '\n"\u202e';

/** How each version tells of a container's start and removal. */
const CALLS: Record<NriVersion, { readonly start: string; readonly remove: string }> = {
  '0.11.0': { start: 'StateChange', remove: 'StateChange' },
  '0.12.5': { start: 'StartContainer', remove: 'RemoveContainer' },
};

/** Whether the plugin may choose what becomes of a container whose answer is late. */
const CHOOSES: Record<NriVersion, boolean> = { '0.11.0': false, '0.12.5': true };

describe.each(Object.keys(NRI_MODULES) as NriVersion[])(
  'the plugin and the runtime side of NRI %s',
  (version) => {
    /** What is to be seen of one version is no test of the other. */
    const testWhere = (chooses: boolean, name: string, test: () => Promise<void>): void => {
      if (CHOOSES[version] === chooses) it(name, test);
    };
    let program = '';
    beforeAll(async () => {
      program = await nriRuntimeBinary(version, printProgress);
    }, BUILD_BUDGET_MS);

    let directory = '';
    let stops: (() => Promise<void>)[] = [];
    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), 'nri-'));
      stops = [];
    });
    afterEach(async () => {
      for (const stop of stops.reverse()) await stop();
      await rm(directory, { recursive: true });
    });

    const socketPath = (): string => join(directory, 'nri.sock');

    async function runtimeWith(options: Partial<NriRuntimeOptions> = {}): Promise<NriRuntime> {
      const runtime = await startNriRuntime({ program, socketPath: socketPath(), ...options });
      stops.push(async () => await runtime.stop());
      return runtime;
    }

    function pluginWith(handlers: Partial<NriHandlers>, failOpen = false) {
      const counts: Record<string, number> = {};
      const logged: string[] = [];
      const note = (_fields: object, message: string): void => void logged.push(message);
      const plugin: NriPlugin = createNriPlugin({
        socketPath: socketPath(),
        pluginName: 'runtime-enforcer-agent',
        pluginIndex: '00',
        failOpen,
        handlers: {
          synchronize: async () => await Promise.resolve(),
          startContainer: async () => await Promise.resolve(),
          removeContainer: async () => await Promise.resolve(),
          ...handlers,
        },
        log: { debug: note, info: note, warn: note, error: note },
        counters: {
          increment(counter, method) {
            const key = method === undefined ? counter : `${counter} ${method}`;
            counts[key] = (counts[key] ?? 0) + 1;
          },
        },
      });
      stops.push(async () => await plugin.stop());
      return { plugin, counts, logged };
    }

    /** A plugin that the runtime has taken in. */
    async function inService(
      handlers: Partial<NriHandlers> = {},
      options: Partial<NriRuntimeOptions> = {},
      failOpen = false,
    ) {
      const runtime = await runtimeWith(options);
      const observed = pluginWith(handlers, failOpen);
      const [synchronized] = await Promise.all([runtime.synchronized(), observed.plugin.start()]);
      expect(synchronized).not.toHaveProperty('error');
      await taken(runtime);
      return { runtime, ...observed };
    }

    async function startOneByOne(runtime: NriRuntime, over: AbortSignal): Promise<readonly Told[]> {
      const answers: Told[] = [];
      while (!over.aborted) answers.push(await runtime.startContainer(0));
      return answers;
    }

    /** The runtime asks a plugin only from some time after its Synchronize on, and lets containers start until then. */
    const taken = async (runtime: NriRuntime, times = 1): Promise<true> =>
      await eventually('the plugin is taken in', () =>
        runtime.log().split('connected and synchronized').length > times ? true : undefined,
      );

    it('agree on who is there, what is told, and every field that is used', async () => {
      const seen: unknown[] = [];
      const told = (pod: NriPodSandbox, container: NriContainer): Promise<void> =>
        Promise.resolve(void seen.push([pod, container]));
      const { runtime, counts } = await inService(
        {
          synchronize: (pods, containers, by) => Promise.resolve(void seen.push([pods, containers, by])),
          startContainer: told,
          removeContainer: told,
        },
        { pods: 2, containers: 3, padding: 5, requestTimeoutMs: 3_000, suffix: SUFFIX },
      );
      expect(await runtime.startContainer(2)).not.toHaveProperty('error');
      expect(await runtime.removeContainer(2)).not.toHaveProperty('error');
      const pods = [0, 1].map((index) => samplePod(index));
      const containers = [0, 1, 2].map((index) => sampleContainer(index, index % 2));
      const by = { name: 'nri-runtime', version: 'v1', requestTimeoutMs: 3_000 };
      const event = [pods[0], containers[2]];
      expect(seen).toEqual([[pods, containers, by], event, event]);
      expect(counts).toMatchObject({ connects: 1, 'requests Configure': 1, 'requests Synchronize': 1 });
      const { start, remove } = CALLS[version];
      const expected = start === remove ? 2 : 1;
      expect([counts[`requests ${start}`], counts[`requests ${remove}`]]).toEqual([expected, expected]);
      expect(counts).not.toHaveProperty('malformed_frames');
    });

    it('carry a state of many messages over, each container once and in order', async () => {
      const many = { pods: 3_000, containers: 10_000, padding: 2_000 };
      expect(many.containers * many.padding).toBeGreaterThan(4 * MESSAGE_MAX_BYTES);
      let pods: readonly NriPodSandbox[] = [];
      let containers: readonly NriContainer[] = [];
      const { counts } = await inService(
        {
          synchronize: (allPods, allContainers) => {
            pods = allPods;
            containers = allContainers;
            return Promise.resolve();
          },
        },
        many,
      );
      expect(counts['requests Synchronize']).toBeGreaterThan(4);
      expect(pods.map(({ id }) => id)).toEqual(
        Array.from({ length: many.pods }, (_, index) => `pod-${index}`),
      );
      expect(containers.map(({ id }) => id)).toEqual(
        Array.from({ length: many.containers }, (_, index) => `container-${index}`),
      );
      expect(containers.every(({ annotations }) => annotations.get('padding')?.length === many.padding)).toBe(
        true,
      );
    });

    it('refuse a container in the words of the plugin, and go on', async () => {
      const refusal = 'shop/pod-0: no policy "web" — see https://example.org';
      const { runtime, counts, plugin } = await inService(
        {
          startContainer: (_, { id }) =>
            id === 'container-1' ? Promise.reject(new Error(refusal)) : Promise.resolve(),
        },
        { containers: 2 },
      );
      expect((await runtime.startContainer(1)).error).toContain(refusal);
      expect(await runtime.startContainer(0)).not.toHaveProperty('error');
      expect(counts[`errors ${CALLS[version].start}`]).toBe(1);
      expect(plugin.connected).toBe(true);
    });

    it('refuse a container whose decision takes too long, before the runtime loses patience', async () => {
      const { runtime, plugin, counts } = await inService(
        { startContainer: async () => await new Promise<never>(() => undefined) },
        { requestTimeoutMs: SHORT_TIMEOUT_MS },
      );
      const answer = await runtime.startContainer(0);
      // Three quarters of what the runtime's call says is left.
      expect(answer.error).toMatch(/no decision within (2[89][0-9]|300) ms/);
      expect(answer.durationMs).toBeLessThan(SHORT_TIMEOUT_MS);
      expect(plugin.connected).toBe(true);
      expect(counts[`deadline_exceeded ${CALLS[version].start}`]).toBe(1);
    });

    /** Answers its first start so late that the runtime has lost patience, and refuses every one. */
    const stuckOnce = (): Partial<NriHandlers> => {
      let isStuck = true;
      return {
        startContainer: () => {
          // Nothing of this process runs meanwhile, its timers neither.
          const end = performance.now() + 2 * SHORT_TIMEOUT_MS;
          while (isStuck && performance.now() < end);
          isStuck = false;
          return Promise.reject(new Error('refused'));
        },
      };
    };

    testWhere(true, 'refuse a container whose answer is late, and stay together', async () => {
      const { runtime, plugin, counts } = await inService(stuckOnce(), {
        requestTimeoutMs: SHORT_TIMEOUT_MS,
      });
      expect((await runtime.startContainer(0)).error).toContain('failed to handle StartContainer request');
      expect(runtime.log()).not.toContain('closing plugin');
      expect((await runtime.startContainer(0)).error).toContain('refused');
      expect(plugin.connected).toBe(true);
      expect([counts['connects'], counts['disconnects']]).toEqual([1, undefined]);
    });

    testWhere(true, 'start a container whose answer is late where that is to fail open', async () => {
      const { runtime, plugin } = await inService(stuckOnce(), { requestTimeoutMs: SHORT_TIMEOUT_MS }, true);
      expect(await runtime.startContainer(0)).not.toHaveProperty('error');
      expect(runtime.log()).toContain('proceeding without it');
      expect(plugin.connected).toBe(true);
    });

    testWhere(false, 'part when the plugin answers late, and find each other again', async () => {
      const { runtime, plugin, counts } = await inService(stuckOnce(), {
        requestTimeoutMs: SHORT_TIMEOUT_MS,
      });
      // What makes a late answer a hole: the runtime goes on as if it had been a yes.
      expect(await runtime.startContainer(0)).not.toHaveProperty('error');
      expect(runtime.log()).toContain('closing plugin');
      expect(await runtime.synchronized()).not.toHaveProperty('error');
      await taken(runtime, 2);
      expect(plugin.connected).toBe(true);
      expect([counts['connects'], counts['disconnects']]).toEqual([2, 1]);
      expect((await runtime.startContainer(0)).error).toContain('refused');
    });

    it('stay together through a Synchronize that takes longer than a request may', async () => {
      const { runtime, plugin, counts } = await inService(
        {
          synchronize: async () => await new Promise((resolve) => setTimeout(resolve, 2 * SHORT_TIMEOUT_MS)),
        },
        { requestTimeoutMs: SHORT_TIMEOUT_MS },
      );
      expect(await runtime.startContainer(0)).not.toHaveProperty('error');
      expect(plugin.connected).toBe(true);
      expect([counts['connects'], counts['deadline_exceeded Synchronize']]).toEqual([1, 1]);
    });

    it.each(['orderly', 'SIGKILL'] as const)(
      'find each other again after the runtime has gone (%s)',
      async (how) => {
        const states: number[] = [];
        const events: string[] = [];
        const { runtime, plugin } = await inService({
          synchronize: (_, containers) => Promise.resolve(void states.push(containers.length)),
          connected: () => events.push('connected'),
          disconnected: () => events.push('disconnected'),
          startContainer: () => Promise.reject(new Error('refused')),
        });
        await runtime.stop(how);
        await eventually('disconnected', () => (plugin.connected ? undefined : true));
        const again = await runtimeWith({ containers: 5 });
        expect(await again.synchronized()).not.toHaveProperty('error');
        await taken(again);
        expect((await again.startContainer(4)).error).toContain('refused');
        expect(states).toEqual([1, 5]);
        expect(events).toEqual(['connected', 'disconnected', 'connected']);
      },
    );

    it('leave no container unasked while everything is taken over once more', async () => {
      const states: number[] = [];
      const { runtime, plugin } = await inService(
        {
          synchronize: (_, containers) => Promise.resolve(void states.push(containers.length)),
          startContainer: () => Promise.reject(new Error('refused')),
        },
        { containers: 3 },
      );
      const over = new AbortController();
      const starting = startOneByOne(runtime, over.signal);
      try {
        for (const round of [1, 2]) {
          await plugin.resynchronize();
          expect(await runtime.synchronized()).not.toHaveProperty('error');
          // The connection that was replaced goes only after a while.
          await eventually('one connection is left', () =>
            runtime.log().split('connection to plugin').length > round ? true : undefined,
          );
        }
      } finally {
        over.abort();
      }
      const answers = await starting;
      expect(answers.length).toBeGreaterThan(100);
      // One that meets the moment in which a connection goes is refused by a runtime that was told to.
      expect(answers.filter(({ error }) => error === undefined)).toEqual([]);
      const unasked = answers.filter(({ error }) => error?.includes('refused') !== true);
      expect(unasked.length).toBeLessThanOrEqual(CHOOSES[version] ? 2 : 0);
      expect(states).toEqual([3, 3, 3]);
      expect(plugin.connected).toBe(true);
    });

    it('answer a thousand starts that come at once', async () => {
      let starts = 0;
      const { runtime } = await inService(
        {
          startContainer: async () => {
            starts++;
            await Promise.resolve();
          },
        },
        { containers: 1_000 },
      );
      const answers = await Promise.all(
        Array.from({ length: 1_000 }, async (_, index) => await runtime.startContainer(index)),
      );
      expect(answers.filter(({ error }) => error !== undefined)).toEqual([]);
      expect(starts).toBe(1_000);
    });
  },
);

function samplePod(index: number): NriPodSandbox {
  return {
    id: `pod-${index}`,
    name: `pod-${index}${SUFFIX}`,
    uid: `uid-pod-${index}`,
    namespace: 'shop',
    labels: new Map([['app', `pod-${index}`]]),
    annotations: new Map(),
    cgroupParent: `/kubepods/pod-${index}`,
    runtimeHandler: '',
    pid: 0,
  };
}

function sampleContainer(index: number, pod: number): NriContainer {
  return {
    id: `container-${index}`,
    podSandboxId: `pod-${pod}`,
    name: `container-${index}${SUFFIX}`,
    state: 'running',
    labels: new Map(),
    annotations: new Map([['padding', 'x'.repeat(5)]]),
    args: ['/bin/server'],
    cgroupsPath: `/kubepods/pod-${pod}/container-${index}`,
    pid: 1_000 + index,
    image: '',
  };
}
