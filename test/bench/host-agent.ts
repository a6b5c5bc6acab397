import { spawn } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import {
  startFakeRuntime,
  type FakeRuntime,
  type FakeRuntimePlugin,
} from '@runtime-enforcer/agent/nri/fake-runtime';
import type { NriContainer, NriPodSandbox } from '@runtime-enforcer/agent/nri/messages';
import { REPOSITORY } from '../vm/repository.ts';

const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 10_000;
const READY_MESSAGE = '"agent is ready"';
const STDERR_TAIL_CHARACTERS = 4_000;
const BUILT = [
  'agent/native/build/enforcer_native.node',
  'bpf/build/enforcer.bpf.o',
  'bpf/build/probe.bpf.o',
] as const;
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";

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
  const served = serve(runtime, options.pods ?? [], options.containers ?? []);
  // Told below, when the agent has said why it did not come.
  served.catch(() => undefined);
  const child = spawn(
    'setpriv',
    [
      ...['--pdeathsig', 'KILL', process.execPath, bundle],
      ...['--policy-dir', join(directory, 'policies'), '--learn-dir', join(directory, 'learned')],
      ...['--violations-file', join(directory, 'violations.jsonl'), '--state-dir', join(directory, 'state')],
      ...['--nri-socket-path', socketPath, '--metrics-bind-address', '127.0.0.1:0'],
      ...(options.args ?? []),
    ],
    { env: { ...process.env, ...options.env }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const metricsPort = Promise.withResolvers<number>();
  const ready = Promise.withResolvers<undefined>();
  let tail = '';
  child.stderr.on('data', (chunk: Buffer) => {
    tail = (tail + chunk.toString()).slice(-STDERR_TAIL_CHARACTERS);
    const port = /"port":(\d+)/.exec(tail)?.[1];
    if (port !== undefined) metricsPort.resolve(Number(port));
    if (tail.includes(READY_MESSAGE)) ready.resolve(undefined);
  });
  const stop = async (): Promise<void> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(timer);
    await runtime.close();
  };
  const timer = setTimeout(
    () => ready.reject(new Error(`the agent did not get ready: ${tail}`)),
    READY_TIMEOUT_MS,
  );
  void ended.then(() => ready.reject(new Error(`the agent ended: ${tail}`)));
  try {
    await ready.promise;
    const plugin = await served;
    const port = await metricsPort.promise;
    return {
      plugin,
      stop,
      residentBytes: () => residentBytes(child.pid ?? 0),
      metric: (sample) => readMetric(port, sample),
    };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** The agent comes when its policies are loaded. */
async function serve(
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

async function bundleHostAgent(output: string): Promise<string> {
  const standIn = join(import.meta.dirname, 'host-kernel-side.ts');
  await build({
    entryPoints: {
      agent: join(REPOSITORY, 'agent/src/main.ts'),
      'policy-parser-worker': join(REPOSITORY, 'agent/src/standalone/policy-parser-worker.ts'),
    },
    plugins: [
      {
        name: 'host-kernel-side',
        setup: (build) => build.onResolve({ filter: /\/kernel-side\.ts$/ }, () => ({ path: standIn })),
      },
    ],
    outdir: output,
    outExtension: { '.js': '.mjs' },
    tsconfig: join(REPOSITORY, 'tsconfig.json'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    external: ['*.node'],
    banner: { js: BANNER },
    logLevel: 'silent',
  });
  for (const file of BUILT)
    await copyFile(join(REPOSITORY, file), join(output, file.slice(file.lastIndexOf('/') + 1)));
  return join(output, 'agent.mjs');
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no resident memory`);
  return Number(kib) * 1024;
}

async function readMetric(port: number, sample: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `));
  if (line === undefined) throw new Error(`the agent has no metric ${sample}:\n${text}`);
  return Number(line.slice(sample.length + 1));
}
