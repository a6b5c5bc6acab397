import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { type Access, createHttpEndpoint, type EndpointAddress, type HttpEndpoint } from './http-endpoint.ts';

/** Metrics in Prometheus' text form, such as a registry of prom-client gives them. */
export interface MetricsText {
  text(): Promise<string>;
  readonly contentType: string;
}

/** Serves `/metrics`, over TLS where there are certificates. */
export function createMetricsEndpoint(options: {
  address: EndpointAddress;
  metrics: MetricsText;
  /** See {@link createHttpEndpoint}. */
  authorize?: (authorization: string | undefined) => Promise<Access>;
  certificates?: CertificateStore;
  onRefused?: (error: unknown) => void;
}): HttpEndpoint {
  const { metrics, ...rest } = options;
  return createHttpEndpoint({
    ...rest,
    nothing: 'the metrics are at /metrics\n',
    answer: async (path) =>
      path === '/metrics'
        ? { status: 200, contentType: metrics.contentType, text: await metrics.text() }
        : undefined,
  });
}
