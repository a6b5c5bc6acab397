import { type FSWatcher, watch } from 'node:fs';
import { type CertificateFileNames, readCertificateDirectory } from './certificate-directory.ts';
import { type KeyPair, parseKeyPair } from './key-pair.ts';

const POLL_MS = 10_000;
/** A swap touches several names; they are read once. */
const SETTLE_MS = 50;

export interface CertificateStoreOptions {
  /** Holds `tls.crt`, `tls.key` and `ca.crt`, usually a mounted volume. */
  readonly directory: string;
  /** Where its files have other names. */
  readonly names?: CertificateFileNames;
  /** Called for each read that gave no usable pair; the last good pair stays in use. */
  readonly onRefused: (error: unknown) => void;
  /** Makes what stands in until the first usable pair, for a program whose other work must not wait for it. */
  readonly placeholder?: () => Promise<KeyPair>;
  /** Milliseconds between reads besides those that the file system's notices cause; 10,000 when left out. */
  readonly pollMs?: number;
  readonly now?: () => Date;
}

/** One validated key pair of a directory, followed as its files are replaced. */
export interface CertificateStore {
  /**
   * Reads the directory for the first time and follows it from then on.
   * @throws CertificateError when there is no usable pair yet and no placeholder; the store is not started then
   */
  start(): Promise<void>;
  stop(): void;
  /**
   * The last good pair. It may have ended since: see its `notAfter`.
   * @throws Error before `start`
   */
  current(): KeyPair;
  /** Reads now. @returns whether the pair is another one than before */
  reload(): Promise<boolean>;
  /** @param listener called with each new pair @returns ends the calls */
  onChange(listener: (pair: KeyPair) => void): () => void;
}

/** See {@link CertificateStore}. A broken, half-written or mismatched new pair never replaces a good one. */
export function certificateStore(options: CertificateStoreOptions): CertificateStore {
  const { directory, names, onRefused, placeholder, pollMs = POLL_MS, now = () => new Date() } = options;
  const listeners = new Set<(pair: KeyPair) => void>();
  let pair: KeyPair | undefined;
  let watcher: FSWatcher | undefined;
  let poll: NodeJS.Timeout | undefined;
  let settle: NodeJS.Timeout | undefined;
  let reading: Promise<boolean> = Promise.resolve(false);
  let lastRefusal: string | undefined;

  /** Reads follow each other, so that an older state never replaces a newer one. */
  function read(): Promise<boolean> {
    reading = reading
      .catch(() => false)
      .then(async () => {
        const next = parseKeyPair(await readCertificateDirectory(directory, names), now());
        if (pair !== undefined && isSame(pair, next)) return false;
        pair = next;
        return true;
      });
    return reading;
  }

  function notify(): void {
    if (pair === undefined) return;
    for (const listener of listeners) {
      try {
        listener(pair);
      } catch (error) {
        onRefused(error);
      }
    }
  }

  async function reload(): Promise<boolean> {
    try {
      const changed = await read();
      lastRefusal = undefined;
      if (changed) notify();
      return changed;
    } catch (error) {
      const refusal = error instanceof Error ? error.message : String(error);
      if (refusal !== lastRefusal) onRefused(error);
      lastRefusal = refusal;
      return false;
    }
  }

  function reloadSoon(): void {
    clearTimeout(settle);
    settle = setTimeout(() => void reload(), SETTLE_MS);
  }

  function follow(): void {
    poll = setInterval(() => {
      watcher ??= openWatcher();
      void reload();
    }, pollMs);
    poll.unref();
    watcher = openWatcher();
  }

  function openWatcher(): FSWatcher | undefined {
    try {
      const opened = watch(directory, { persistent: false }, reloadSoon);
      opened.on('error', () => {
        opened.close();
        watcher = undefined;
      });
      return opened;
    } catch {
      // Without notices (no inotify watch left) the poll still finds every change.
      return undefined;
    }
  }

  return {
    async start() {
      if (placeholder === undefined) await read();
      else if (!(await reload())) pair ??= await placeholder();
      follow();
    },
    stop() {
      clearInterval(poll);
      clearTimeout(settle);
      watcher?.close();
      watcher = undefined;
    },
    current() {
      if (pair === undefined) throw new Error('the certificate store has not been started');
      return pair;
    },
    reload,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function isSame(one: KeyPair, other: KeyPair): boolean {
  return (
    one.certificate === other.certificate && one.key === other.key && one.authorities === other.authorities
  );
}
