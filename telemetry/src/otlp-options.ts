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
