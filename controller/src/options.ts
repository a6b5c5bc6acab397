import {
  CERTIFICATE_FILE_NAMES,
  type CertificateFileNames,
} from '@runtime-enforcer/certs/certificate-directory';
import { LEASE_TIMINGS, type LeaseTimings } from '@runtime-enforcer/kube/lease-elector';
import { parseLabelSelector } from '@runtime-enforcer/kube/label-selector-text';
import { LOG_LEVELS, type LogLevel } from '@runtime-enforcer/telemetry/logger';
import {
  OTLP_PROTOCOLS,
  type OtlpOptions,
  OtlpOptionsError,
  readOtlpOptions,
} from '@runtime-enforcer/telemetry/otlp-options';
import {
  GENERATED_CERTIFICATE_FLAGS,
  type GeneratedCertificatesSettings,
  readGeneratedCertificates,
} from './certificates/generated-options.ts';
import { UNKNOWN_POLICY_ACTIONS, type UnknownPolicyAction } from './admission/policy-label.ts';
import {
  type Address,
  addressOf,
  durationMsOf,
  type FlagSpec,
  type GivenFlags,
  portOf,
  readFlags,
  truthOf,
  UsageError,
  wordOf,
} from '@runtime-enforcer/kube/program-flags';

/** The flags of the controller. Names and defaults that the public reference has are its. */
export const FLAGS = {
  'metrics-bind-address': { value: 'HOST:PORT', help: 'serve /metrics there; 0 for nowhere', default: '0' },
  'metrics-secure': { help: 'serve metrics over TLS, to those who may read them', default: 'true' },
  'metrics-cert-path': {
    value: 'DIR',
    help: 'certificate, key and ca.crt of the metrics server; without it those of the webhooks',
    default: '',
  },
  'metrics-cert-name': { value: 'NAME', help: 'file of the certificate there', default: 'tls.crt' },
  'metrics-cert-key': { value: 'NAME', help: 'file of the key there', default: 'tls.key' },
  'health-probe-bind-address': {
    value: 'HOST:PORT',
    help: 'serve /healthz and /readyz there; 0 for nowhere',
    default: ':8081',
  },
  'leader-elect': { help: 'take part in the election of one leader among the replicas', default: 'false' },
  'leader-elect-lease-duration': {
    value: 'TIME',
    help: 'how long others wait before they take an unrenewed lease',
    default: `${LEASE_TIMINGS.leaseMs}ms`,
  },
  'leader-elect-renew-deadline': {
    value: 'TIME',
    help: 'how long the leader acts on its last renewal',
    default: `${LEASE_TIMINGS.renewDeadlineMs}ms`,
  },
  'leader-elect-retry-period': {
    value: 'TIME',
    help: 'between two tries to get or renew the lease',
    default: `${LEASE_TIMINGS.retryMs}ms`,
  },
  'webhook-cert-path': {
    value: 'DIR',
    help: 'certificate, key and ca.crt of the webhooks',
    default: '/tmp/k8s-webhook-server/serving-certs',
  },
  'webhook-cert-name': { value: 'NAME', help: 'file of the certificate there', default: 'tls.crt' },
  'webhook-cert-key': { value: 'NAME', help: 'file of the key there', default: 'tls.key' },
  'webhook-bind-address': { value: 'HOST:PORT', help: 'serve the webhooks there', default: ':9443' },
  'enable-http2': { help: 'true is not offered: every server speaks HTTP/1.1', default: 'false' },
  'admission-unknown-policy': {
    value: UNKNOWN_POLICY_ACTIONS.join('|'),
    help: 'what becomes of a new pod that names a policy which does not exist',
    default: 'warn',
  },
  'wp-status-reconciler-agent-grpc-port': { value: 'PORT', help: 'where agents answer', default: '50051' },
  'wp-status-reconciler-update-interval': {
    value: 'TIME',
    help: 'between two rounds of writing the status of policies; required',
    default: '0',
  },
  'wp-status-reconciler-agent-label-selector': {
    value: 'SELECTOR',
    help: 'labels of the pods of agents',
    default: 'app.kubernetes.io/component=agent',
  },
  'wp-status-reconciler-agent-grpc-mtls-enabled': {
    help: 'false: agents are not asked, as nobody could be told apart',
    default: 'true',
  },
  'wp-status-reconciler-agent-grpc-mtls-cert-dir': {
    value: 'DIR',
    help: 'tls.crt, tls.key and ca.crt to show to agents',
    default: '/etc/runtime-enforcer/certs',
  },
  'wp-status-reconciler-agent-grpc-server-name': {
    value: 'NAME',
    help: 'DNS name in the certificate of every agent; without it that of its pod, POD.NAMESPACE',
    default: '',
  },
  ...GENERATED_CERTIFICATE_FLAGS,
  'log-level': { value: LOG_LEVELS.join('|'), help: 'least level that is logged', default: 'info' },
  'otlp-endpoint': { value: 'ADDRESS', help: 'where to send log records; OTEL_EXPORTER_OTLP_ENDPOINT' },
  'otlp-ca-cert': { value: 'FILE', help: 'authority of the endpoint; OTEL_EXPORTER_OTLP_CERTIFICATE' },
  'otlp-client-cert': {
    value: 'FILE',
    help: 'certificate to show there; OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE',
  },
  'otlp-client-key': { value: 'FILE', help: 'and its key; OTEL_EXPORTER_OTLP_CLIENT_KEY' },
  'otlp-protocol': {
    value: OTLP_PROTOCOLS.join('|'),
    help: 'how to send them; OTEL_EXPORTER_OTLP_PROTOCOL, or grpc',
  },
  kubeconfig: { value: 'FILE', help: 'how to reach the API server, outside of a cluster', default: '' },
} as const satisfies Record<string, FlagSpec>;

/** What the controller runs with. */
export interface ControllerOptions {
  /** Absent: the service account of the pod. */
  readonly kubeconfig?: string;
  readonly logLevel: LogLevel;
  readonly health: Address | undefined;
  readonly metrics: {
    readonly address: Address | undefined;
    readonly secure: boolean;
    readonly certificates: CertificatePlace;
  };
  /** Absent: this process leads without asking. */
  readonly election: LeaseTimings | undefined;
  readonly webhook: {
    readonly address: Address;
    readonly certificates: CertificatePlace;
    readonly unknownPolicy: UnknownPolicyAction;
  };
  readonly status: {
    readonly intervalMs: number;
    readonly agentPort: number;
    readonly agentSelector: string;
    /** Absent: agents are not asked. */
    readonly agentCertificateDirectory?: string;
    /** Absent: each agent has a name of its own. */
    readonly agentServerName?: string;
  };
  /** Absent: certificates come from elsewhere. */
  readonly generatedCertificates?: GeneratedCertificatesSettings;
  readonly otlp?: OtlpOptions;
  /** The controller's own pod. */
  readonly podName?: string;
  readonly podNamespace?: string;
}

/** Where a server's certificate is. */
export interface CertificatePlace {
  readonly directory: string;
  readonly names: CertificateFileNames;
}

/** Reads the command line and the environment. @throws UsageError */
export function readControllerOptions(
  args: readonly string[],
  environment: Readonly<NodeJS.ProcessEnv>,
): ControllerOptions {
  const flags = readFlags(args, FLAGS);
  const textOf = (name: keyof typeof FLAGS): string => flags.get(name) ?? '';
  const isTrue = (name: keyof typeof FLAGS): boolean => truthOf(name, textOf(name));
  const ms = (name: keyof typeof FLAGS): number => durationMsOf(name, textOf(name));
  const address = (name: keyof typeof FLAGS): Address | undefined => addressOf(name, textOf(name));
  const webhookAddress = address('webhook-bind-address');
  if (webhookAddress === undefined) {
    throw new UsageError('--webhook-bind-address: the webhooks must be served; give HOST:PORT');
  }
  if (isTrue('enable-http2')) {
    throw new UsageError('--enable-http2: HTTP/2 is not offered; leave the flag out');
  }
  const certificates = {
    directory: textOf('webhook-cert-path'),
    names: fileNames(textOf('webhook-cert-name'), textOf('webhook-cert-key')),
  };
  const metricsDirectory = textOf('metrics-cert-path');
  const agentCertificateDirectory = textOf('wp-status-reconciler-agent-grpc-mtls-cert-dir');
  const agentServerName = textOf('wp-status-reconciler-agent-grpc-server-name');
  const generatedCertificates = readGeneratedCertificates(textOf);
  const otlp = otlpOptions(flags, environment);
  const { POD_NAME: podName, POD_NAMESPACE: podNamespace } = environment;
  return {
    ...(textOf('kubeconfig') !== '' && { kubeconfig: textOf('kubeconfig') }),
    logLevel: wordOf('log-level', textOf('log-level'), LOG_LEVELS),
    health: address('health-probe-bind-address'),
    metrics: {
      address: address('metrics-bind-address'),
      secure: isTrue('metrics-secure'),
      certificates:
        metricsDirectory === ''
          ? certificates
          : {
              directory: metricsDirectory,
              names: fileNames(textOf('metrics-cert-name'), textOf('metrics-cert-key')),
            },
    },
    election: isTrue('leader-elect') ? leaseTimings(ms) : undefined,
    webhook: {
      address: webhookAddress,
      certificates,
      unknownPolicy: wordOf(
        'admission-unknown-policy',
        textOf('admission-unknown-policy'),
        UNKNOWN_POLICY_ACTIONS,
      ),
    },
    status: {
      intervalMs: ms('wp-status-reconciler-update-interval'),
      agentPort: portOf(
        'wp-status-reconciler-agent-grpc-port',
        textOf('wp-status-reconciler-agent-grpc-port'),
      ),
      agentSelector: selectorOf(textOf('wp-status-reconciler-agent-label-selector')),
      ...(isTrue('wp-status-reconciler-agent-grpc-mtls-enabled') && { agentCertificateDirectory }),
      ...(agentServerName !== '' && { agentServerName }),
    },
    ...(generatedCertificates && { generatedCertificates }),
    ...(otlp && { otlp }),
    ...(podName && { podName }),
    ...(podNamespace && { podNamespace }),
  };
}

function fileNames(certificate: string, key: string): CertificateFileNames {
  return { ...CERTIFICATE_FILE_NAMES, certificate, key };
}

function leaseTimings(ms: (name: keyof typeof FLAGS) => number): LeaseTimings {
  const timings = {
    leaseMs: ms('leader-elect-lease-duration'),
    renewDeadlineMs: ms('leader-elect-renew-deadline'),
    retryMs: ms('leader-elect-retry-period'),
  };
  const { leaseMs, renewDeadlineMs, retryMs } = timings;
  if (leaseMs % 1_000 !== 0 || leaseMs <= renewDeadlineMs || renewDeadlineMs <= retryMs) {
    throw new UsageError(
      `--leader-elect-lease-duration ${leaseMs}ms must be whole seconds and longer than --leader-elect-renew-deadline ` +
        `${renewDeadlineMs}ms, and that longer than --leader-elect-retry-period ${retryMs}ms`,
    );
  }
  return timings;
}

function selectorOf(text: string): string {
  try {
    parseLabelSelector(text);
    return text;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--wp-status-reconciler-agent-label-selector ${JSON.stringify(text)}: ${reason}`, {
      cause,
    });
  }
}

function otlpOptions(
  flags: GivenFlags<keyof typeof FLAGS>,
  environment: Readonly<NodeJS.ProcessEnv>,
): OtlpOptions | undefined {
  try {
    return readOtlpOptions((flag) => flags.get(flag), environment);
  } catch (cause) {
    if (cause instanceof OtlpOptionsError) throw new UsageError(cause.message, { cause });
    throw cause;
  }
}
