import type { LabelSelector } from '@runtime-enforcer/kube/label-selector';
import { parseLabelSelector } from '@runtime-enforcer/kube/label-selector-text';
import {
  durationMsOf,
  type FlagSpec,
  portOf,
  readFlags,
  truthOf,
  UsageError,
  wordOf,
} from '@runtime-enforcer/kube/program-flags';

const OUTPUTS = ['text', 'json'] as const;

/** The flags of the debugger. Most can be given by a variable of the environment, which the flag precedes. */
export const FLAGS = {
  once: { help: 'compare once, and end with code 3 if something differs', default: 'false' },
  output: { value: OUTPUTS.join('|'), short: 'o', help: 'how to print what was found', default: 'text' },
  interval: { value: 'TIME', help: 'between two comparisons; DEBUGGER_INTERVAL', default: '10s' },
  'grpc-port': { value: 'PORT', help: 'where agents answer; DEBUGGER_GRPC_PORT', default: '50051' },
  'agent-label-selector': {
    value: 'SELECTOR',
    help: "labels of the agents' pods; DEBUGGER_AGENT_LABEL_SELECTOR",
    default: 'app.kubernetes.io/component=agent',
  },
  'cert-dir': {
    value: 'DIR',
    help: 'tls.crt, tls.key and ca.crt to show to agents; DEBUGGER_CERT_DIR',
    default: '/etc/runtime-enforcer/certs',
  },
  'agent-server-name': {
    value: 'NAME',
    help: 'DNS name in the certificate of every agent; without it that of its pod; DEBUGGER_AGENT_SERVER_NAME',
    default: '',
  },
  kubeconfig: { value: 'FILE', help: 'how to reach the API server, outside of a cluster', default: '' },
} as const satisfies Record<string, FlagSpec>;

type FlagName = keyof typeof FLAGS;

const VARIABLES: Partial<Record<FlagName, string>> = {
  interval: 'DEBUGGER_INTERVAL',
  'grpc-port': 'DEBUGGER_GRPC_PORT',
  'agent-label-selector': 'DEBUGGER_AGENT_LABEL_SELECTOR',
  'cert-dir': 'DEBUGGER_CERT_DIR',
  'agent-server-name': 'DEBUGGER_AGENT_SERVER_NAME',
};

/** What the debugger runs with. */
export interface DebuggerOptions {
  /** `once`: compare, print and end. */
  readonly once: boolean;
  readonly output: (typeof OUTPUTS)[number];
  readonly intervalMs: number;
  readonly grpcPort: number;
  readonly agentSelector: LabelSelector;
  readonly certificateDirectory: string;
  /** Absent: each agent has a name of its own. */
  readonly agentServerName?: string;
  /** Absent: the service account of the pod. */
  readonly kubeconfig?: string;
  /** The debugger's own namespace, which is the agents'. */
  readonly podNamespace?: string;
}

/** Reads the command line and the environment. @throws UsageError naming the flag, and the variable it came from */
export function readDebuggerOptions(
  args: readonly string[],
  environment: Readonly<NodeJS.ProcessEnv>,
): DebuggerOptions {
  const flags = readFlags(args, flagsOf(environment));
  const read = <T>(name: FlagName, parse: (name: string, text: string) => T): T => {
    const variable = VARIABLES[name] ?? '';
    const text = flags.get(name) ?? '';
    try {
      return parse(name, text);
    } catch (cause) {
      const isFlag = args.some((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`));
      if (isFlag || environment[variable] !== text || !(cause instanceof UsageError)) throw cause;
      throw new UsageError(`${variable}: ${cause.message}`, { cause });
    }
  };
  const kubeconfig = read('kubeconfig', textOf);
  const agentServerName = read('agent-server-name', textOf);
  const { POD_NAMESPACE: podNamespace } = environment;
  return {
    once: read('once', truthOf),
    output: read('output', (name, text) => wordOf(name, text, OUTPUTS)),
    intervalMs: read('interval', durationMsOf),
    grpcPort: read('grpc-port', portOf),
    agentSelector: read('agent-label-selector', selectorOf),
    certificateDirectory: read('cert-dir', textOf),
    ...(agentServerName !== '' && { agentServerName }),
    ...(kubeconfig !== '' && { kubeconfig }),
    ...(podNamespace && { podNamespace }),
  };
}

/** What the environment gives stands where a default would. */
function flagsOf(environment: Readonly<NodeJS.ProcessEnv>): Record<FlagName, FlagSpec> {
  return Object.fromEntries(
    Object.entries<FlagSpec>(FLAGS).map(([name, spec]) => {
      const variable = VARIABLES[name as FlagName] ?? '';
      const text = environment[variable] ?? '';
      return [name, text === '' ? spec : { ...spec, default: text }];
    }),
  ) as Record<FlagName, FlagSpec>;
}

function textOf(_name: string, text: string): string {
  return text;
}

/** One that selects every pod would have agents that are none asked. */
function selectorOf(name: string, text: string): LabelSelector {
  let selector: LabelSelector;
  try {
    selector = parseLabelSelector(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--${name} ${JSON.stringify(text)}: ${reason}`, { cause });
  }
  if (selector.length > 0) return selector;
  throw new UsageError(`--${name}: expected labels that only the pods of agents have`);
}
