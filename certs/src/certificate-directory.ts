import { readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CertificateError, type KeyPairFiles } from './key-pair.ts';

/** The link that kubelet and CSI drivers swap to replace all files of a volume at once. */
const CURRENT_VERSION = '..data';
const MAX_FILE_BYTES = 1024 * 1024;
/** How often a directory whose version changes while it is read is read again. */
const READ_ATTEMPTS = 5;

/** Under which names a directory holds the three files. */
export interface CertificateFileNames {
  readonly certificate: string;
  readonly key: string;
  readonly authorities: string;
}

export const CERTIFICATE_FILE_NAMES: CertificateFileNames = {
  certificate: 'tls.crt',
  key: 'tls.key',
  authorities: 'ca.crt',
};

/**
 * Reads `tls.crt`, `tls.key` and `ca.crt` of one version of a mounted volume: all three from the directory to which
 * `..data` points at that moment, or from the directory itself where there is no such link.
 *
 * @param names where the files have other names than Kubernetes gives them
 * @throws CertificateError when one is missing, unreadable or longer than 1 MiB
 */
export async function readCertificateDirectory(
  directory: string,
  names: CertificateFileNames = CERTIFICATE_FILE_NAMES,
): Promise<KeyPairFiles> {
  for (let attempt = 1; ; attempt++) {
    const version = await currentVersion(directory);
    try {
      return {
        'tls.crt': await readBounded(version, names.certificate),
        'tls.key': await readBounded(version, names.key),
        'ca.crt': await readBounded(version, names.authorities),
      };
    } catch (error) {
      // The version that was being read may have been removed after a swap.
      if (attempt === READ_ATTEMPTS || (await currentVersion(directory)) === version) throw error;
    }
  }
}

async function currentVersion(directory: string): Promise<string> {
  try {
    return await realpath(join(directory, CURRENT_VERSION));
  } catch {
    return directory;
  }
}

async function readBounded(directory: string, name: string): Promise<string> {
  const path = join(directory, name);
  try {
    const { size } = await stat(path);
    if (size > MAX_FILE_BYTES) {
      throw new CertificateError(path, `the file has ${size} bytes`, `expected at most ${MAX_FILE_BYTES}`);
    }
    return await readFile(path, 'utf8');
  } catch (cause) {
    if (cause instanceof CertificateError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CertificateError(path, `cannot be read (${reason})`, 'mount the certificate there', { cause });
  }
}
