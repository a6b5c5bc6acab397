import { createSecureContext } from 'node:tls';
import { credentials, type ChannelCredentials } from '@grpc/grpc-js';
import { OTLPLogExporter as GrpcLogExporter } from '@opentelemetry/exporter-logs-otlp-grpc';
import { OTLPLogExporter as HttpLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import type { LogRecordExporter } from '@opentelemetry/sdk-logs';
import type { OtlpProtocol } from './otlp-options.ts';
import type { TlsMaterial, TlsSource } from './tls-source.ts';

/** Where records go. */
export interface OtlpTarget {
  readonly protocol: OtlpProtocol;
  /**
   * `grpc`: `HOST:PORT`, with `http://` or `https://` before it or not. `http/protobuf`: a URL; without a path of its
   * own it is completed by `/v1/logs`.
   */
  readonly endpoint: string;
  /** Absent: no TLS for `grpc` without `https://`, otherwise the authorities of the system. */
  readonly tls?: TlsSource;
}

const MIN_VERSION = 'TLSv1.3';
const LOGS_PATH = '/v1/logs';

/** Takes an endpoint and its protocol as somebody configured them. Throws an Error that says what was expected. */
export function checkOtlpEndpoint(protocol: OtlpProtocol, endpoint: string): void {
  if (protocol === 'grpc') grpcAddress(endpoint);
  else logsUrl(endpoint);
}

/**
 * An exporter with the TLS material of this moment.
 * @param timeoutMs after which an export has failed
 */
export function createOtlpExporter(
  { protocol, endpoint, tls }: OtlpTarget,
  timeoutMs: number,
): LogRecordExporter {
  const material = tls?.current();
  if (protocol === 'grpc') {
    const { address, isSecure } = grpcAddress(endpoint);
    return new GrpcLogExporter({
      url: `${isSecure || material !== undefined ? 'https' : 'http'}://${address}`,
      credentials: grpcCredentials(isSecure ? (material ?? {}) : material),
      timeoutMillis: timeoutMs,
    });
  }
  const url = logsUrl(endpoint);
  return new HttpLogExporter({
    url: url.href,
    timeoutMillis: timeoutMs,
    httpAgentOptions:
      url.protocol === 'https:'
        ? { keepAlive: true, ...contextOptions(material ?? {}) }
        : { keepAlive: true },
  });
}

function grpcCredentials(material: TlsMaterial | undefined): ChannelCredentials {
  if (material === undefined) return credentials.createInsecure();
  return credentials.createFromSecureContext(createSecureContext(contextOptions(material)));
}

function contextOptions({ authorities, certificate, key }: TlsMaterial): object {
  return {
    minVersion: MIN_VERSION,
    ...(authorities !== undefined && { ca: authorities }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
  };
}

function grpcAddress(endpoint: string): { readonly address: string; readonly isSecure: boolean } {
  const match = /^(?:(https?):\/\/)?((?:\[[0-9a-fA-F:.]+\]|[^\s:/[\]]+):[0-9]{1,5})\/?$/.exec(endpoint);
  if (match?.[2] === undefined) {
    throw new Error(
      `the OTLP endpoint ${JSON.stringify(endpoint)} is none for grpc: expected HOST:PORT, such as collector:4317`,
    );
  }
  return { address: match[2], isSecure: match[1] === 'https' };
}

function logsUrl(endpoint: string): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new Error(
      `the OTLP endpoint ${JSON.stringify(endpoint)} is none for http/protobuf: expected a URL such as ` +
        'https://collector:4318',
    );
  }
  if (url.pathname === '/') url.pathname = LOGS_PATH;
  return url;
}
