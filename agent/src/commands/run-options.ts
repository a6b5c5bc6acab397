import type { Address } from '@runtime-enforcer/kube/program-flags';
import { hostname } from 'node:os';
import { LOG_LEVELS, type LogLevel } from '@runtime-enforcer/telemetry/logger';
import { readBindAddress } from './bind-address.ts';
import { CLUSTER_OPTIONS, readClusterOptions, type ClusterOptions } from './cluster-options.ts';
import {
  chosenWord,
  readOptions,
  refuseOperands,
  wholeNumberOption,
  type GivenOptions,
  type OptionSpec,
} from './options.ts';
import { UsageError } from './usage-error.ts';

export const DEFAULT_NRI_SOCKET = '/var/run/nri/nri.sock';
export const DEFAULT_STATE_DIR = '/run/runtime-enforcer';

const ATTACHMENTS = ['auto', 'lsm', 'fmod_ret'] as const;
const EXIT_ACTIONS = ['keep', 'release'] as const;

/** Bounds of --capacity, in paths per table. */
const MIN_CAPACITY = 1_024;
const MAX_CAPACITY = 16_777_216;

/** Options of the agent without Kubernetes. */
export const STANDALONE_OPTIONS = {
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
} as const satisfies Record<string, OptionSpec>;

/** Options of every agent. */
export const NODE_OPTIONS = {
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
  'metrics-bind-address': {
    value: 'HOST:PORT',
    help: 'serve Prometheus metrics at http://HOST:PORT/metrics',
    defaultText: 'off',
  },
  'state-dir': {
    value: 'DIR',
    help: 'where a running agent keeps its state',
    defaultText: DEFAULT_STATE_DIR,
  },
  'node-name': {
    value: 'NAME',
    help: 'name of this node in records',
    defaultText: 'NODE_NAME, or the host name',
    mayBeEmpty: true,
  },
  'log-level': { value: LOG_LEVELS.join('|'), help: 'least level that is logged', defaultText: 'info' },
} as const satisfies Record<string, OptionSpec>;

const RUN_OPTIONS = { ...STANDALONE_OPTIONS, ...CLUSTER_OPTIONS, ...NODE_OPTIONS };

/** What `agent` runs with. */
export interface RunOptions {
  /** Present where policies come from the API server of a cluster, and none of the directories and files here. */
  readonly cluster?: ClusterOptions;
  readonly policyDirectory?: string;
  readonly learnDirectory?: string;
  readonly violationsFile?: string;
  readonly nriSocketPath: string;
  readonly nriPluginIndex: string;
  readonly onExit: (typeof EXIT_ACTIONS)[number];
  /** Paths per common table; absent: the default of the kernel side. */
  readonly capacity?: number;
  readonly attachment: (typeof ATTACHMENTS)[number];
  readonly metricsAddress?: Address;
  readonly stateDirectory: string;
  readonly logLevel: LogLevel;
  /** Whether a container that cannot be bound starts nevertheless. */
  readonly failOpen: boolean;
  readonly nodeName: string;
}

/** Reads the options of `agent` without a command. Throws a {@link UsageError}. */
export function readRunOptions(args: readonly string[], environment: NodeJS.ProcessEnv): RunOptions {
  const given = readOptions(args, RUN_OPTIONS);
  refuseOperands(given);
  const { values } = given;
  const policyDirectory = values.get('policy-dir');
  const learnDirectory = values.get('learn-dir');
  const isStandalone = policyDirectory !== undefined || learnDirectory !== undefined;
  refuseMixed(given, isStandalone);
  const violationsFile = values.get('violations-file');
  const capacity = wholeNumberOption(given, 'capacity', { min: MIN_CAPACITY, max: MAX_CAPACITY });
  const metrics = values.get('metrics-bind-address');
  const metricsAddress = metrics === undefined ? undefined : readBindAddress('metrics-bind-address', metrics);
  return {
    ...(!isStandalone && { cluster: readClusterOptions(given, environment) }),
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
    nodeName: [values.get('node-name'), environment['NODE_NAME']].find(isSaid) ?? hostname(),
  };
}

/** An option of the other mode would do nothing: whoever gave it means something else. */
function refuseMixed({ values }: GivenOptions, isStandalone: boolean): void {
  const others = Object.keys(isStandalone ? CLUSTER_OPTIONS : STANDALONE_OPTIONS);
  const strange = others.find((name) => values.has(name));
  if (strange === undefined) return;
  throw new UsageError(
    isStandalone
      ? `--${strange} is for Kubernetes, and --policy-dir or --learn-dir for an agent without it; take one away`
      : `--${strange} is for an agent without Kubernetes; give --policy-dir DIR or --learn-dir DIR with it`,
  );
}

function isSaid(text: string | undefined): boolean {
  return text !== undefined && text !== '';
}

function readPluginIndex(text: string): string {
  if (/^[0-9]{2}$/.test(text)) return text;
  throw new UsageError(`--nri-plugin-index ${JSON.stringify(text)}: expected two digits, such as 00`);
}
