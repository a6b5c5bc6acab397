import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

/** A certificate with its key, and the authorities that its owner trusts, all of one moment and PEM. */
export interface KeyPair {
  /** The certificate, and after it the intermediate ones if there are any. */
  readonly certificate: string;
  readonly key: string;
  readonly authorities: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** SHA-256 of the certificate, for logs. */
  readonly fingerprint: string;
}

/** Why a directory holds no usable certificate, naming the file and what to do. */
export class CertificateError extends Error {
  readonly file: string;

  constructor(file: string, message: string, remedy: string, options?: ErrorOptions) {
    super(`${file}: ${message}; ${remedy}`, options);
    this.name = 'CertificateError';
    this.file = file;
  }
}

/** The three files by the names that Kubernetes gives them in a TLS secret. */
export interface KeyPairFiles {
  readonly 'tls.crt': string;
  readonly 'tls.key': string;
  readonly 'ca.crt': string;
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
const PEM_BEGIN = /-----BEGIN CERTIFICATE-----/g;
const WAIT_OR_RENEW = 'renew the certificate, or look why its issuer does not';

/**
 * Checks that the three files can serve together: each whole and readable, the key that of the certificate, and the
 * certificate valid now.
 *
 * @throws CertificateError
 */
export function parseKeyPair(files: KeyPairFiles, now: Date): KeyPair {
  const [leaf] = certificates('tls.crt', files['tls.crt']);
  const authorities = certificates('ca.crt', files['ca.crt']);
  const key = privateKey(files['tls.key']);
  if (!leaf.checkPrivateKey(key)) {
    throw new CertificateError('tls.key', 'the key is not that of tls.crt', 'write both files of one pair');
  }
  requireCurrent('tls.crt', leaf, now);
  if (authorities.every((authority) => authority.validToDate <= now))
    requireCurrent('ca.crt', authorities[0], now);
  return {
    certificate: files['tls.crt'],
    key: files['tls.key'],
    authorities: files['ca.crt'],
    notBefore: leaf.validFromDate,
    notAfter: leaf.validToDate,
    fingerprint: leaf.fingerprint256,
  };
}

function certificates(file: string, text: string): [X509Certificate, ...X509Certificate[]] {
  const remedy = 'write the file whole, as PEM';
  const blocks = text.match(PEM_CERTIFICATE) ?? [];
  if (blocks.length < (text.match(PEM_BEGIN)?.length ?? 0)) {
    throw new CertificateError(file, 'a certificate in it has no end', remedy);
  }
  const [first, ...others] = blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch (cause) {
      throw new CertificateError(file, `certificate ${index + 1} in it cannot be read`, remedy, { cause });
    }
  });
  if (first === undefined) throw new CertificateError(file, 'there is no certificate in it', remedy);
  return [first, ...others];
}

function privateKey(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch (cause) {
    // The cause never quotes the key.
    throw new CertificateError('tls.key', 'the key cannot be read', 'write an unencrypted key, as PEM', {
      cause,
    });
  }
}

function requireCurrent(file: string, certificate: X509Certificate, now: Date): void {
  if (certificate.validToDate <= now) {
    const ended = certificate.validToDate.toISOString();
    throw new CertificateError(file, `the certificate ended at ${ended}`, WAIT_OR_RENEW);
  }
  if (certificate.validFromDate > now) {
    const begins = certificate.validFromDate.toISOString();
    throw new CertificateError(file, `the certificate begins at ${begins}`, "set this node's clock, or wait");
  }
}
