import type { X509Certificate } from 'node:crypto';
import { quote } from '@runtime-enforcer/api/field-error';

/** Which component a client is; it decides which methods the client may call. */
export type ClientRole = 'controller' | 'debugger';

/** DNS name in a client's certificate, and the component that alone gets certificates with that name. */
export type ClientNames = ReadonlyMap<string, ClientRole>;

export const DEFAULT_CLIENT_NAMES: ClientNames = new Map([
  ['controller', 'controller'],
  ['debugger', 'debugger'],
]);

/** A client by its certificate; `role` is undefined for one that may call nothing. */
export interface ClientIdentity {
  readonly name: string;
  readonly role: ClientRole | undefined;
  readonly notAfter: Date;
}

/** Only these parts of the certificate name it: its subject and wildcards do not. */
const EXACT_DNS_NAME = { subject: 'never', wildcards: false } as const;

/** Who a certificate that its authority vouches for belongs to. */
export function clientIdentity(certificate: X509Certificate, names: ClientNames): ClientIdentity {
  const notAfter = certificate.validToDate;
  for (const [name, role] of names) {
    if (certificate.checkHost(name, EXACT_DNS_NAME) !== undefined) return { name, role, notAfter };
  }
  return { name: quote(certificate.subjectAltName ?? 'no name'), role: undefined, notAfter };
}
