import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { yamlText } from '@runtime-enforcer/api/yaml-text';
import { helmBinary } from '../chart/helm-binary.ts';
import type { ControlPlane } from '../cluster/control-plane.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { kubectlDirectory } from './kubectl-binary.ts';
import { PLUGIN_DIRECTORY } from './package-plugin.ts';

const TIME_LIMIT_MS = 50_000;
/** Of util-linux: runs a program on a terminal of its own. */
const SCRIPT = '/usr/bin/script';

/** What a command printed, and how it ended. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Ends the command by SIGINT when its output has this text. */
  readonly untilOutput?: string;
  readonly cwd?: string;
  /** How long it may take; 50,000 when left out. */
  readonly limitMs?: number;
}

/** A person at a shell that has kubectl, the packaged plugin, and nothing else. */
export interface PluginRunner {
  /** Runs `kubectl ARGS`. */
  kubectl(args: readonly string[], options?: RunOptions): Promise<CommandResult>;
  /** Runs `kubectl runtime-enforcer` with arguments separated by single spaces. */
  plugin(args: string | readonly string[], options?: RunOptions): Promise<CommandResult>;
  /** The same on a terminal, where somebody types the input; everything that is shown is in `stdout`. */
  pluginOnTerminal(args: string, options?: RunOptions): Promise<CommandResult>;
  /** Runs a command that was told to a person, in the checkout: of kubectl or of helm. */
  command(line: string, options?: RunOptions): Promise<CommandResult>;
  /** Variables of the shell in which {@link command} runs. */
  environment(): Promise<Readonly<Record<string, string>>>;
  /** A directory for files of the test. */
  readonly directory: string;
  /** Writes a kubeconfig and names its file. */
  writeKubeconfig(name: string, config: Readonly<Record<string, unknown>>): Promise<string>;
  stop(): Promise<void>;
}

/** @param namespace that of the kubeconfig's context */
export async function pluginRunner(plane: ControlPlane, namespace: string): Promise<PluginRunner> {
  const directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-plugin-'));
  const path = [await kubectlDirectory(printProgress), PLUGIN_DIRECTORY].join(delimiter);
  const writeKubeconfig = async (
    name: string,
    config: Readonly<Record<string, unknown>>,
  ): Promise<string> => {
    const file = join(directory, name);
    await writeFile(file, yamlText({ apiVersion: 'v1', kind: 'Config', ...config }));
    return file;
  };
  const kubeconfig = await writeKubeconfig('config', adminConfig(plane, namespace));

  const environment = { PATH: path, HOME: directory, KUBECONFIG: kubeconfig };
  const kubectlPath = join(await kubectlDirectory(printProgress), 'kubectl');
  const shell = async () => ({
    ...environment,
    PATH: [path, dirname(await helmBinary(printProgress))].join(delimiter),
  });
  const kubectl = async (args: readonly string[], options: RunOptions = {}): Promise<CommandResult> =>
    await run(kubectlPath, args, { ...options, env: { ...environment, ...options.env } });
  return {
    kubectl,
    directory,
    writeKubeconfig,
    plugin: async (args, options) =>
      await kubectl(['runtime-enforcer', ...(typeof args === 'string' ? args.split(' ') : args)], options),
    environment: shell,
    async command(line, options = {}) {
      const env = { ...(await shell()), ...options.env };
      return await run('/bin/sh', ['-c', line], { cwd: REPOSITORY, ...options, env });
    },
    async pluginOnTerminal(args, options = {}) {
      const env = { ...environment, TERM: 'xterm', ...options.env };
      const command = `${kubectlPath} runtime-enforcer ${args}`;
      return await run(SCRIPT, ['--quiet', '--return', '--command', command, '/dev/null'], {
        ...options,
        env,
      });
    },
    stop: async () => await rm(directory, { recursive: true, force: true }),
  };
}

/** The kubeconfig of the cluster's administrator, as an object. */
export function adminConfig({ url, credentials }: ControlPlane, namespace: string) {
  const base64 = (pem: string) => Buffer.from(pem).toString('base64');
  const { authority, admin } = credentials;
  return {
    clusters: [
      {
        name: 'test',
        cluster: { server: url, 'certificate-authority-data': base64(authority.certificate) },
      },
    ],
    users: [
      {
        name: 'admin',
        user: {
          'client-certificate-data': base64(admin.certificate),
          'client-key-data': base64(admin.key),
        },
      },
    ],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin', namespace } }],
    'current-context': 'test',
  };
}

async function run(
  program: string,
  args: readonly string[],
  options: RunOptions & { readonly env: Readonly<Record<string, string>> },
): Promise<CommandResult> {
  const child = spawn(program, args, {
    env: options.env,
    ...(options.cwd !== undefined && { cwd: options.cwd }),
  });
  let stdout = '';
  let stderr = '';
  const stopWhenSeen = (): void => {
    const { untilOutput } = options;
    if (untilOutput !== undefined && stdout.includes(untilOutput)) child.kill('SIGINT');
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    stopWhenSeen();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined).end(options.input ?? '');
  const timer = setTimeout(() => child.kill('SIGKILL'), options.limitMs ?? TIME_LIMIT_MS);
  return await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, stdout, stderr });
    });
  });
}
