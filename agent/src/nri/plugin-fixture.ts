import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { startFakeRuntime } from './fake-runtime.ts';
import type { FakeRuntime, FakeRuntimeOptions, FakeRuntimePlugin } from './fake-runtime.ts';
import { createNriPlugin } from './plugin.ts';
import type { NriContainer, NriHandlers, NriPlugin, NriPodSandbox } from './plugin.ts';

export const samplePod: NriPodSandbox = {
  id: 'p1',
  name: 'web',
  uid: 'u1',
  namespace: 'shop',
  labels: new Map([['runtimeenforcer.kubewarden.io/policy', 'web']]),
  annotations: new Map([['__proto__', 'x']]),
  cgroupParent: '/kubepods',
  runtimeHandler: '',
  pid: 7,
};

export const sampleContainer: NriContainer = {
  id: 'c1',
  podSandboxId: 'p1',
  name: 'main',
  state: 'created',
  labels: new Map(),
  annotations: new Map(),
  args: ['/bin/server', ''],
  cgroupsPath: '/kubepods/c1',
  pid: 8,
  image: 'i',
};

export interface ObservedPlugin {
  plugin: NriPlugin;
  /** Counter values; the key is the counter's name, followed by the method if it has one. */
  counts: Map<string, number>;
  /** Messages logged so far, of any level. */
  logged: string[];
}

export interface PluginFixture {
  /** A path in the test's own directory. */
  path: (name: string) => string;
  runtimeWith: (options?: Omit<FakeRuntimeOptions, 'socketPath'>) => Promise<FakeRuntime>;
  pluginWith: (
    handlers?: Partial<NriHandlers>,
    where?: { socketPath?: string; firstConnectTimeoutMs?: number; failOpen?: boolean },
  ) => ObservedPlugin;
  /** A plugin that is in service, and the runtime's view of it. */
  inService: (
    handlers?: Partial<NriHandlers>,
    options?: Omit<FakeRuntimeOptions, 'socketPath'>,
  ) => Promise<ObservedPlugin & { runtime: FakeRuntime; seen: FakeRuntimePlugin }>;
}

/** Test support: plugins and fake runtimes on a socket of their own, all ended after each test. */
export function usePluginFixture(): PluginFixture {
  let directory = '';
  let stops: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'nri-plugin-'));
    stops = [];
  });
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop();
    await rm(directory, { recursive: true });
  });

  const path = (name: string): string => join(directory, name);

  const runtimeWith: PluginFixture['runtimeWith'] = async (options = {}) => {
    const runtime = await startFakeRuntime({ socketPath: path('nri.sock'), ...options });
    stops.push(() => runtime.close());
    return runtime;
  };

  const pluginWith: PluginFixture['pluginWith'] = (handlers = {}, where) => {
    const counts = new Map<string, number>();
    const logged: string[] = [];
    const note = (_fields: object, message: string): void => void logged.push(message);
    const plugin = createNriPlugin({
      socketPath: path('nri.sock'),
      pluginName: 'runtime-enforcer-agent',
      pluginIndex: '00',
      failOpen: where?.failOpen ?? false,
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
      ...where,
    });
    stops.push(() => plugin.stop());
    return { plugin, counts, logged };
  };

  return {
    path,
    runtimeWith,
    pluginWith,
    async inService(handlers = {}, options = {}) {
      const runtime = await runtimeWith(options);
      const observed = pluginWith(handlers);
      const [seen] = await Promise.all([runtime.serve(), observed.plugin.start()]);
      return { ...observed, runtime, seen };
    },
  };
}
