import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { AGENT } from '../../agent/bundled-program.ts';
import { bundleOptions } from '../../images/program-bundle.ts';
import {
  startFakeRuntime,
  type FakeRuntime,
  type FakeRuntimePlugin,
} from '@runtime-enforcer/agent/nri/fake-runtime';
import type { NriContainer, NriPodSandbox } from '@runtime-enforcer/agent/nri/messages';
import { sampleOf, startHostProcess } from './host-process.ts';

const READY_TIMEOUT_MS = 120_000;

/** A running agent and the runtime that it is connected to. */
export interface HostAgent {
  /** The runtime's view of it. */
  readonly plugin: FakeRuntimePlugin;
  /** Resident memory in bytes, now. */
  residentBytes(): Promise<number>;
  /** The samples of its Prometheus metrics whose name and labels are this text. */
  metric(sample: string): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Bundles the agent as it ships, but for the module that loads the kernel program (see host-kernel-side.ts), starts
 * it with its own command line and a runtime end, and waits until it is ready.
 *
 * @param directory where its files go; its `policies` are loaded
 * @throws Error with the end of its log if it does not get ready
 */
export async function startHostAgent(options: {
  readonly directory: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly pods?: readonly NriPodSandbox[];
  readonly containers?: readonly NriContainer[];
}): Promise<HostAgent> {
  const { directory } = options;
  const bundle = await bundleHostAgent(join(directory, 'bundle'));
  await mkdir(join(directory, 'policies'), { recursive: true });
  const socketPath = join(directory, 'nri.sock');
  const runtime = await startFakeRuntime({ socketPath });
  const served = serveAgent(runtime, options.pods ?? [], options.containers ?? []);
  // Told below.
  served.catch(() => undefined);
  const agent = startHostProcess({
    command: [
      ...[process.execPath, bundle],
      ...['--policy-dir', join(directory, 'policies'), '--learn-dir', join(directory, 'learned')],
      ...['--violations-file', join(directory, 'violations.jsonl'), '--state-dir', join(directory, 'state')],
      ...['--nri-socket-path', socketPath, '--metrics-bind-address', '127.0.0.1:0'],
      ...(options.args ?? []),
    ],
    env: options.env ?? {},
    logsTo: 'stderr',
  });
  const stop = async (): Promise<void> => {
    await agent.stop();
    await runtime.close();
  };
  try {
    const [plugin] = await Promise.all([served, agent.ready()]);
    const { port = 0 } = await agent.line('metrics are served');
    return {
      plugin,
      stop,
      residentBytes: () => agent.residentBytes(),
      metric: async (sample) =>
        sampleOf(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(), sample),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Serves the agent when it comes. Rejects if it does not. */
export async function serveAgent(
  runtime: FakeRuntime,
  pods: readonly NriPodSandbox[],
  containers: readonly NriContainer[],
): Promise<FakeRuntimePlugin> {
  const plugin = await runtime.accept(READY_TIMEOUT_MS);
  await plugin.configure();
  await plugin.synchronize(pods, containers);
  return plugin;
}

/** A directory for one run, gone afterwards. */
export async function inTemporaryDirectory<T>(action: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-bench-'));
  try {
    return await action(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** @returns the program; what it needs stands beside it */
export async function bundleHostAgent(output: string): Promise<string> {
  const standIn = join(import.meta.dirname, 'host-kernel-side.ts');
  const options = bundleOptions(AGENT, output);
  await build({
    ...options,
    plugins: [
      ...(options.plugins ?? []),
      {
        name: 'host-kernel-side',
        setup: (build) => build.onResolve({ filter: /\/kernel-side\.ts$/ }, () => ({ path: standIn })),
      },
    ],
  });
  for (const file of AGENT.builtFiles) await copyFile(file, join(output, basename(file)));
  return join(output, 'agent.mjs');
}
