import { hostname } from 'node:os';
import { LOG_LEVELS, type LogLevel } from '../log.ts';
import { chosenWord, readOptions, refuseOperands, wholeNumberOption, type OptionSpec } from './options.ts';
import { UsageError } from './usage-error.ts';

export const DEFAULT_NRI_SOCKET = '/var/run/nri/nri.sock';
export const DEFAULT_STATE_DIR = '/run/runtime-enforcer';

const ATTACHMENTS = ['auto', 'lsm', 'fmod_ret'] as const;
const EXIT_ACTIONS = ['keep', 'release'] as const;

/** Bounds of --capacity, in paths per table. */
const MIN_CAPACITY = 1_024;
const MAX_CAPACITY = 16_777_216;

export const RUN_OPTIONS = {
  'policy-dir': {
    value: 'DIR',
    help: 'enforce the WorkloadPolicies in the YAML files of DIR, and follow its changes',
  },
  'learn-dir': {
    value: 'DIR',
    help: 'write what containers without a policy start into proposals below DIR',
    defaultText: 'learning is off',
  },
  'violations-file': {
    value: 'FILE',
    help: 'write violations into FILE too, rotated at 10 MiB, five files',
    defaultText: 'standard output only',
  },
  'nri-socket-path': {
    value: 'PATH',
    help: 'NRI socket of the container runtime',
    defaultText: DEFAULT_NRI_SOCKET,
  },
  'nri-plugin-index': { value: 'NN', help: 'place among the NRI plugins', defaultText: '00' },
  'on-exit': {
    value: 'keep|release',
    help: 'what an orderly stop does with the enforcement in the kernel',
    defaultText: 'keep',
  },
  capacity: {
    value: 'PATHS',
    help: 'paths of common length that the kernel tables hold',
    defaultText: '65536',
  },
  attachment: {
    value: 'auto|lsm|fmod_ret',
    help: 'how to attach to the kernel',
    defaultText: 'auto: the strongest that it has',
  },
  'metrics-address': {
    value: 'HOST:PORT',
    help: 'serve Prometheus metrics at http://HOST:PORT/metrics',
    defaultText: 'off',
  },
  'state-dir': {
    value: 'DIR',
    help: 'where a running agent keeps its state',
    defaultText: DEFAULT_STATE_DIR,
  },
  'log-level': { value: LOG_LEVELS.join('|'), help: 'least level that is logged', defaultText: 'info' },
} as const satisfies Record<string, OptionSpec>;

/** What `agent` runs with. */
export interface RunOptions {
  readonly policyDirectory?: string;
  readonly learnDirectory?: string;
  readonly violationsFile?: string;
  readonly nriSocketPath: string;
  readonly nriPluginIndex: string;
  readonly onExit: (typeof EXIT_ACTIONS)[number];
  /** Paths per common table; absent: the default of the kernel side. */
  readonly capacity?: number;
  readonly attachment: (typeof ATTACHMENTS)[number];
  readonly metricsAddress?: MetricsAddress;
  readonly stateDirectory: string;
  readonly logLevel: LogLevel;
  /** Whether a container that cannot be bound starts nevertheless. */
  readonly failOpen: boolean;
  readonly nodeName: string;
}

export interface MetricsAddress {
  readonly host: string;
  readonly port: number;
}

/** Reads the options of `agent` without a command. Throws a {@link UsageError}. */
export function readRunOptions(args: readonly string[], environment: NodeJS.ProcessEnv): RunOptions {
  const given = readOptions(args, RUN_OPTIONS);
  refuseOperands(given);
  const { values } = given;
  const policyDirectory = values.get('policy-dir');
  const learnDirectory = values.get('learn-dir');
  if (policyDirectory === undefined && learnDirectory === undefined) {
    throw new UsageError(
      'nothing to do: give --policy-dir DIR to enforce, --learn-dir DIR to learn, or both',
    );
  }
  const violationsFile = values.get('violations-file');
  const capacity = wholeNumberOption(given, 'capacity', { min: MIN_CAPACITY, max: MAX_CAPACITY });
  const metricsAddress = readAddress(values.get('metrics-address'));
  return {
    ...(policyDirectory !== undefined && { policyDirectory }),
    ...(learnDirectory !== undefined && { learnDirectory }),
    ...(violationsFile !== undefined && { violationsFile }),
    ...(capacity !== undefined && { capacity }),
    ...(metricsAddress !== undefined && { metricsAddress }),
    nriSocketPath: values.get('nri-socket-path') ?? DEFAULT_NRI_SOCKET,
    nriPluginIndex: readPluginIndex(values.get('nri-plugin-index') ?? '00'),
    onExit: chosenWord(given, 'on-exit', EXIT_ACTIONS, 'keep'),
    attachment: chosenWord(given, 'attachment', ATTACHMENTS, 'auto'),
    stateDirectory: values.get('state-dir') ?? DEFAULT_STATE_DIR,
    logLevel: chosenWord(given, 'log-level', LOG_LEVELS, 'info'),
    // Anything but this very word keeps unknown policies refused.
    failOpen: environment['NRI_FAILOPEN'] === 'true',
    nodeName: environment['NODE_NAME'] ?? hostname(),
  };
}

function readPluginIndex(text: string): string {
  if (/^[0-9]{2}$/.test(text)) return text;
  throw new UsageError(`--nri-plugin-index ${JSON.stringify(text)}: expected two digits, such as 00`);
}

function readAddress(text: string | undefined): MetricsAddress | undefined {
  if (text === undefined) return undefined;
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new UsageError(
      `--metrics-address ${JSON.stringify(text)}: expected HOST:PORT, such as 127.0.0.1:9090 or [::1]:9090`,
    );
  }
  return { host: match[1] ?? (match[2] === '' ? '0.0.0.0' : (match[2] ?? '')), port };
}
