export const OTLP_PROTOCOLS = ['grpc', 'http/protobuf'] as const;
export type OtlpProtocol = (typeof OTLP_PROTOCOLS)[number];

/** Where log records go, as a program's `--otlp-…` flags or the environment say it. */
export interface OtlpOptions {
  readonly endpoint: string;
  readonly protocol: OtlpProtocol;
  readonly caFile?: string;
  /** Both or neither of the two. */
  readonly clientCertificateFile?: string;
  readonly clientKeyFile?: string;
}

/** The flags, without `--`, and what follows `OTEL_EXPORTER_OTLP_` in the variable that each stands before. */
export const OTLP_VARIABLES = {
  'otlp-endpoint': 'ENDPOINT',
  'otlp-protocol': 'PROTOCOL',
  'otlp-ca-cert': 'CERTIFICATE',
  'otlp-client-cert': 'CLIENT_CERTIFICATE',
  'otlp-client-key': 'CLIENT_KEY',
} as const;

export type OtlpFlag = keyof typeof OTLP_VARIABLES;

/** The flags or the variables contradict each other; the message names the flags. */
export class OtlpOptionsError extends Error {
  override readonly name = 'OtlpOptionsError';
}

/**
 * A flag that is given counts before its variable (those of the OpenTelemetry specification), also where it is empty: so
 * that `--otlp-endpoint=` turns off what the environment turns on.
 *
 * @param flag the text of a flag; undefined: not given
 * @returns undefined if nothing is to be sent
 * @throws OtlpOptionsError
 */
export function readOtlpOptions(
  flag: (name: OtlpFlag) => string | undefined,
  environment: Readonly<NodeJS.ProcessEnv>,
): OtlpOptions | undefined {
  const read = (name: OtlpFlag): string | undefined => {
    const text = flag(name) ?? environment[`OTEL_EXPORTER_OTLP_${OTLP_VARIABLES[name]}`];
    return text === '' ? undefined : text;
  };
  const asked = read('otlp-protocol') ?? 'grpc';
  const protocol = OTLP_PROTOCOLS.find((known) => known === asked);
  if (protocol === undefined) {
    throw new OtlpOptionsError(
      `--otlp-protocol ${JSON.stringify(asked)} is not known; expected ${OTLP_PROTOCOLS.join(' or ')}`,
    );
  }
  const endpoint = read('otlp-endpoint');
  if (endpoint === undefined) return undefined;
  const caFile = read('otlp-ca-cert');
  const clientCertificateFile = read('otlp-client-cert');
  const clientKeyFile = read('otlp-client-key');
  if ((clientCertificateFile === undefined) !== (clientKeyFile === undefined)) {
    throw new OtlpOptionsError(
      '--otlp-client-cert and --otlp-client-key belong together: give both, or neither',
    );
  }
  return {
    ...{ endpoint, protocol },
    ...(caFile !== undefined && { caFile }),
    ...(clientCertificateFile !== undefined && { clientCertificateFile }),
    ...(clientKeyFile !== undefined && { clientKeyFile }),
  };
}
