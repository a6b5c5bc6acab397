/** The authority of a secret in tests: it has to look like PEM, and nobody reads it. */
const AUTHORITY = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';

/** Values of each way to get certificates. */
export const CERTIFICATE_MODES = {
  'cert-manager-csi': { mode: 'cert-manager-csi' },
  generated: { mode: 'generated' },
  secret: {
    mode: 'secret',
    secret: {
      ...{ agent: 'a-tls', controller: 'c-tls', webhook: 'w-tls', debugger: 'd-tls', collector: 'o-tls' },
      webhookAuthority: AUTHORITY,
    },
  },
} as const;

const external = (more: object) => ({
  collectorStrategy: 'external',
  externalCollector: { endpoint: 'otel.example.org:4317', ...more },
});

/** Values of each way of events, the external one with and without its secrets. */
export const TELEMETRY = {
  none: { collectorStrategy: 'none' },
  // What is set for another strategy must not leave a volume or a mount behind.
  'none, secrets set': {
    ...external({
      otelCollectorCertificateSecret: 'authority',
      otelCollectorClientCertificateSecret: 'client',
    }),
    collectorStrategy: 'none',
  },
  default: { collectorStrategy: 'default' },
  'default, secrets set': {
    ...external({ otelCollectorCertificateSecret: 'authority' }),
    collectorStrategy: 'default',
  },
  external: external({}),
  'external, its authority': external({ otelCollectorCertificateSecret: 'authority' }),
  'external, both secrets': external({
    otelCollectorCertificateSecret: 'authority',
    otelCollectorClientCertificateSecret: 'client',
  }),
} as const;

const MONITORING = Object.fromEntries(
  ['serviceMonitor', 'podMonitor', 'prometheusRule', 'dashboard'].map((name) => [name, { enabled: true }]),
);

/** Everything that is off by default, on. */
export const EVERYTHING = {
  debugger: { enabled: true },
  controller: { pdb: { enabled: true } },
  admission: { requireNriPlugin: true, autoBind: 'required' },
  monitoring: MONITORING,
} as const;

/** Every strategy with every mode of certificates, with everything on. */
export const COMBINATIONS: readonly (readonly [name: string, values: object])[] = Object.entries(
  CERTIFICATE_MODES,
).flatMap(([mode, certificates]) =>
  Object.entries(TELEMETRY).map(
    ([strategy, telemetry]) => [`${mode}, ${strategy}`, { ...EVERYTHING, certificates, telemetry }] as const,
  ),
);
