import type { Address } from '@runtime-enforcer/kube/program-flags';
import type { LabelSelector } from '@runtime-enforcer/kube/label-selector';
import {
  OTLP_PROTOCOLS,
  type OtlpOptions,
  OtlpOptionsError,
  readOtlpOptions,
} from '@runtime-enforcer/telemetry/otlp-options';
import { LearningSelectorError, parseLearningSelector } from '../learning/learning-selector.ts';
import { readBindAddress } from './bind-address.ts';
import { chosenWord, wholeNumberOption, type GivenOptions, type OptionSpec } from './options.ts';
import { UsageError } from './usage-error.ts';

const DEFAULT_HEALTH_ADDRESS = ':8081';
const DEFAULT_GRPC_PORT = 50_051;
const MAX_PORT = 65_535;
const TRUTH = ['true', 'false'] as const;

/** Options of the agent on Kubernetes. */
export const CLUSTER_OPTIONS = {
  kubeconfig: {
    value: 'FILE',
    help: 'how to reach the API server',
    defaultText: 'the service account of the pod',
  },
  'learning-namespace-selector': {
    value: 'JSON',
    help: 'label selector of the namespaces in which to learn',
    defaultText: 'learning is off',
    mayBeEmpty: true,
  },
  'health-probe-bind-address': {
    value: 'HOST:PORT',
    help: 'serve /healthz and /readyz there; 0 turns them off',
    defaultText: DEFAULT_HEALTH_ADDRESS,
  },
  'grpc-port': {
    value: 'PORT',
    help: 'where controllers ask for states and violations',
    defaultText: String(DEFAULT_GRPC_PORT),
  },
  'grpc-mtls-enabled': {
    value: TRUTH.join('|'),
    help: 'false: nothing is served there, as nobody could be told apart',
    defaultText: 'true',
  },
  'grpc-mtls-cert-dir': { value: 'DIR', help: 'tls.crt, tls.key and ca.crt of the agent' },
  'grpc-controller-name': {
    value: 'NAME',
    help: 'DNS name in the certificate of the controller',
    defaultText: 'controller',
  },
  'grpc-debugger-name': {
    value: 'NAME',
    help: 'DNS name in the certificate of the debugger',
    defaultText: 'debugger',
  },
  'journal-dir': {
    value: 'DIR',
    help: 'where violations are kept until they are read',
    defaultText: 'journal in --state-dir',
  },
  'otlp-endpoint': {
    value: 'ADDRESS',
    help: 'where to send violations as log records',
    defaultText: 'OTEL_EXPORTER_OTLP_ENDPOINT, or nowhere',
    mayBeEmpty: true,
  },
  'otlp-protocol': {
    value: OTLP_PROTOCOLS.join('|'),
    help: 'how to send them',
    defaultText: 'OTEL_EXPORTER_OTLP_PROTOCOL, or grpc',
    mayBeEmpty: true,
  },
  'otlp-ca-cert': {
    value: 'FILE',
    help: 'authority of the endpoint',
    defaultText: 'OTEL_EXPORTER_OTLP_CERTIFICATE',
    mayBeEmpty: true,
  },
  'otlp-client-cert': {
    value: 'FILE',
    help: 'certificate to show there',
    defaultText: 'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE',
    mayBeEmpty: true,
  },
  'otlp-client-key': {
    value: 'FILE',
    help: 'and its key',
    defaultText: 'OTEL_EXPORTER_OTLP_CLIENT_KEY',
    mayBeEmpty: true,
  },
} as const satisfies Record<string, OptionSpec>;

/** What the agent runs with on Kubernetes, besides what it needs everywhere. */
export interface ClusterOptions {
  /** Absent: the service account of the pod. */
  readonly kubeconfig?: string;
  /** Absent: nothing is learned. */
  readonly learningSelector?: LabelSelector;
  readonly healthAddress?: Address;
  readonly grpcPort: number;
  /** Absent: nothing is served by gRPC. */
  readonly grpcCertificateDirectory?: string;
  readonly grpcControllerName: string;
  readonly grpcDebuggerName: string;
  readonly journalDirectory?: string;
  readonly otlp?: OtlpOptions;
  readonly ownPod?: OwnPod;
}

/** The pod that the agent itself runs in. */
export interface OwnPod {
  readonly name: string;
  readonly namespace: string;
}

/** Reads what concerns Kubernetes. Throws a {@link UsageError}. */
export function readClusterOptions(given: GivenOptions, environment: NodeJS.ProcessEnv): ClusterOptions {
  const { values } = given;
  const kubeconfig = values.get('kubeconfig');
  if (kubeconfig === undefined && environment['KUBERNETES_SERVICE_HOST'] === undefined) {
    throw new UsageError(
      'nothing to do: this is no pod of a cluster; give --policy-dir DIR to enforce, --learn-dir DIR to learn, ' +
        'or --kubeconfig FILE to follow the policies of a cluster',
    );
  }
  const journalDirectory = values.get('journal-dir');
  const learningSelector = readSelector(values.get('learning-namespace-selector') ?? '');
  const health = values.get('health-probe-bind-address') ?? DEFAULT_HEALTH_ADDRESS;
  const healthAddress = health === '0' ? undefined : readBindAddress('health-probe-bind-address', health);
  const otlp = readOtlp(given, environment);
  const grpcCertificateDirectory = readCertificateDirectory(given);
  const { POD_NAME: name, POD_NAMESPACE: namespace } = environment;
  const hasOwnPod = name !== undefined && name !== '' && namespace !== undefined && namespace !== '';
  return {
    ...(kubeconfig !== undefined && { kubeconfig }),
    ...(learningSelector !== undefined && { learningSelector }),
    ...(healthAddress !== undefined && { healthAddress }),
    grpcPort: wholeNumberOption(given, 'grpc-port', { min: 0, max: MAX_PORT }) ?? DEFAULT_GRPC_PORT,
    grpcControllerName: values.get('grpc-controller-name') ?? 'controller',
    grpcDebuggerName: values.get('grpc-debugger-name') ?? 'debugger',
    ...(grpcCertificateDirectory !== undefined && { grpcCertificateDirectory }),
    ...(journalDirectory !== undefined && { journalDirectory }),
    ...(otlp !== undefined && { otlp }),
    ...(hasOwnPod && { ownPod: { name, namespace } }),
  };
}

function readSelector(text: string): LabelSelector | undefined {
  try {
    return parseLearningSelector(text);
  } catch (cause) {
    if (cause instanceof LearningSelectorError) throw new UsageError(cause.message, { cause });
    throw cause;
  }
}

function readCertificateDirectory(given: GivenOptions): string | undefined {
  if (chosenWord(given, 'grpc-mtls-enabled', TRUTH, 'true') === 'false') return undefined;
  const directory = given.values.get('grpc-mtls-cert-dir');
  if (directory !== undefined) return directory;
  throw new UsageError(
    '--grpc-mtls-cert-dir is missing: give the directory with tls.crt, tls.key and ca.crt, or ' +
      '--grpc-mtls-enabled=false to serve nothing there',
  );
}

function readOtlp({ values }: GivenOptions, environment: NodeJS.ProcessEnv): OtlpOptions | undefined {
  try {
    return readOtlpOptions((flag) => values.get(flag), environment);
  } catch (cause) {
    if (cause instanceof OtlpOptionsError) throw new UsageError(cause.message, { cause });
    throw cause;
  }
}
