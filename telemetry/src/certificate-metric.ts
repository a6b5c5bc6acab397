import { Gauge, type Registry } from 'prom-client';

const MS_PER_SECOND = 1_000;

/**
 * Adds the ends of certificates to a registry.
 *
 * @param ends by what the certificate is for; undefined where there is no usable one
 */
export function observeCertificateEnds(
  registry: Registry,
  ends: Readonly<Record<string, () => Date | undefined>>,
): void {
  new Gauge({
    name: 'runtime_enforcer_certificate_end_timestamp_seconds',
    help: 'When the certificate in use ends, in seconds since 1970; 0 where there is none.',
    labelNames: ['certificate'],
    registers: [registry],
    collect() {
      for (const [certificate, end] of Object.entries(ends)) {
        this.set({ certificate }, (end()?.getTime() ?? 0) / MS_PER_SECOND);
      }
    },
  });
}
