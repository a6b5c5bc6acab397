import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';

const POLL_MS = 10_000;
const MAX_FILE_BYTES = 1024 * 1024;

/** What one end of a TLS connection needs, all PEM. */
export interface TlsMaterial {
  /** Whom it trusts; undefined: the authorities of the system. */
  readonly authorities?: string;
  /** Both or neither. */
  readonly certificate?: string;
  readonly key?: string;
}

/** TLS material that may be replaced while the program runs. */
export interface TlsSource {
  current(): TlsMaterial;
  /** @returns ends the calls */
  onChange(listener: () => void): () => void;
  stop(): void;
}

/** Files by what they hold, each path as it was configured. */
export interface TlsFiles {
  readonly authorities?: string;
  readonly certificate?: string;
  readonly key?: string;
}

/** The pair and the authorities of a certificate store, which is started and stopped elsewhere. */
export function tlsFromStore(store: CertificateStore): TlsSource {
  return {
    current: () => store.current(),
    onChange: (listener) => store.onChange(listener),
    stop: () => undefined,
  };
}

/**
 * Reads single files, and again every few seconds. What cannot be used never replaces what could.
 *
 * @param onRefused told of each reading that could not be used, once as long as it is for the same reason
 * @throws Error naming the file, if the first reading cannot be used
 */
export async function tlsFromFiles(
  files: TlsFiles,
  onRefused: (error: unknown) => void,
  pollMs = POLL_MS,
): Promise<TlsSource> {
  let material = await readMaterial(files);
  let refusal = '';
  let reading = false;
  const listeners = new Set<() => void>();
  const poll = async (): Promise<void> => {
    if (reading) return;
    reading = true;
    try {
      const next = await readMaterial(files);
      refusal = '';
      if (isSame(material, next)) return;
      material = next;
      for (const listener of listeners) listener();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (text !== refusal) onRefused(error);
      refusal = text;
    } finally {
      reading = false;
    }
  };
  const timer = setInterval(() => void poll(), pollMs);
  timer.unref();
  return {
    current: () => material,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => clearInterval(timer),
  };
}

async function readMaterial(files: TlsFiles): Promise<TlsMaterial> {
  if ((files.certificate === undefined) !== (files.key === undefined)) {
    const only = files.certificate ?? files.key ?? '';
    throw new Error(`${only}: a client certificate and its key go together; give both or neither`);
  }
  const authorities = files.authorities === undefined ? undefined : await readPem(files.authorities);
  const certificate = files.certificate === undefined ? undefined : await readPem(files.certificate);
  const key = files.key === undefined ? undefined : await readPem(files.key);
  if (authorities !== undefined) certificateOf(files.authorities ?? '', authorities);
  if (certificate === undefined || key === undefined) return authorities === undefined ? {} : { authorities };
  const pair = certificateOf(files.certificate ?? '', certificate);
  if (!pair.checkPrivateKey(privateKeyOf(files.key ?? '', key))) {
    throw new Error(`${files.key ?? ''}: the key is not that of ${files.certificate ?? ''}`);
  }
  return { ...(authorities !== undefined && { authorities }), certificate, key };
}

async function readPem(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes, expected at most ${MAX_FILE_BYTES}`);
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new Error(`${path}: cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
}

function certificateOf(path: string, pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${path}: there is no certificate in it that can be read; write it whole, as PEM`, {
      cause,
    });
  }
}

function privateKeyOf(path: string, pem: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new Error(`${path}: the key cannot be read; write an unencrypted key, as PEM`, { cause });
  }
}

function isSame(one: TlsMaterial, other: TlsMaterial): boolean {
  return (
    one.authorities === other.authorities && one.certificate === other.certificate && one.key === other.key
  );
}
