import { durationMsOf, type FlagSpec, UsageError } from '@runtime-enforcer/kube/program-flags';

/** How many certificates follow each other while an authority lives, at least: it must not end before its last one. */
const MIN_CERTIFICATES = 4;
const MAX_LIFETIME_MS = 100 * 365 * 24 * 3_600_000;

/** The flags of certificates that the product makes itself. */
export const GENERATED_CERTIFICATE_FLAGS = {
  'generated-certificates-release': {
    value: 'NAME',
    help: 'make and renew the certificates of all parts of this release, in secrets of the own namespace',
    default: '',
  },
  'generated-certificates-cluster-domain': {
    value: 'DOMAIN',
    help: 'where the names of services end',
    default: 'cluster.local',
  },
  'generated-certificates-authority-lifetime': {
    value: 'TIME',
    help: 'how long an authority lives; its successor is announced in the last quarter',
    default: '8736h',
  },
  'generated-certificates-lifetime': {
    value: 'TIME',
    help: 'how long other certificates live; they are renewed in the last third',
    default: '720h',
  },
} as const satisfies Record<string, FlagSpec>;

/** What the controller makes certificates with. */
export interface GeneratedCertificatesSettings {
  readonly release: string;
  readonly clusterDomain: string;
  readonly authorityLifetimeMs: number;
  readonly lifetimeMs: number;
}

/** Undefined where certificates come from elsewhere. @throws UsageError */
export function readGeneratedCertificates(
  textOf: (name: keyof typeof GENERATED_CERTIFICATE_FLAGS) => string,
): GeneratedCertificatesSettings | undefined {
  const release = textOf('generated-certificates-release');
  if (release === '') return undefined;
  const ms = (name: keyof typeof GENERATED_CERTIFICATE_FLAGS): number =>
    durationMsOf(name, textOf(name), MAX_LIFETIME_MS);
  const authorityLifetimeMs = ms('generated-certificates-authority-lifetime');
  const lifetimeMs = ms('generated-certificates-lifetime');
  if (lifetimeMs * MIN_CERTIFICATES > authorityLifetimeMs) {
    throw new UsageError(
      `--generated-certificates-lifetime ${textOf('generated-certificates-lifetime')}: expected at most a quarter of ` +
        `--generated-certificates-authority-lifetime ${textOf('generated-certificates-authority-lifetime')}`,
    );
  }
  const clusterDomain = textOf('generated-certificates-cluster-domain');
  return { release, clusterDomain, authorityLifetimeMs, lifetimeMs };
}
