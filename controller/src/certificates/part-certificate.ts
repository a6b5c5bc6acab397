import type { Resource } from '@runtime-enforcer/kube/resource-path';

export const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets' };

/** The parts of a release that prove themselves by a certificate. */
const PARTS = ['agent', 'controller', 'webhook', 'debugger', 'otel-collector'] as const;
export type CertifiedPart = (typeof PARTS)[number];

/** Where the parts of a release are found, as the chart names them. */
export interface ReleasePlace {
  /** What the names of all its objects begin with. */
  readonly release: string;
  readonly namespace: string;
  readonly clusterDomain: string;
}

/** The certificate of one part. */
export interface PartCertificate {
  readonly part: CertifiedPart;
  /** The secret that it is kept in. */
  readonly secret: string;
  readonly dnsNames: readonly string[];
}

/** The secret of the authority itself. */
export function authoritySecret({ release }: ReleasePlace): string {
  return `${release}-ca`;
}

/** Certificates of all parts of a release, under the names by which the parts know each other. */
export function partCertificates(place: ReleasePlace): PartCertificate[] {
  return PARTS.map((part) => ({
    part,
    secret: `${place.release}-${part}-tls`,
    dnsNames: dnsNames(part, place),
  }));
}

function dnsNames(part: CertifiedPart, { release, namespace, clusterDomain }: ReleasePlace): string[] {
  switch (part) {
    case 'agent':
    case 'controller':
    case 'debugger':
      return [`${release}-${part}`];
    case 'webhook':
      return serviceNames(`${release}-controller-webhook`, namespace, clusterDomain).slice(2);
    case 'otel-collector':
      return serviceNames(`${release}-${part}`, namespace, clusterDomain);
  }
}

function serviceNames(service: string, namespace: string, clusterDomain: string): string[] {
  const inCluster = `${service}.${namespace}.svc`;
  return [service, `${service}.${namespace}`, inCluster, `${inCluster}.${clusterDomain}`];
}
