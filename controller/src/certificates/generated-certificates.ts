import { setInterval, setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isConflict, isNotFound } from '@runtime-enforcer/kube/api-error';
import { isJsonObject, isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { objectPath } from '@runtime-enforcer/kube/resource-path';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import { recordFields, renewedAuthority, type SecretFields } from './authority-record.ts';
import { writeVolume } from './certificate-volume.ts';
import {
  authoritySecret,
  type CertifiedPart,
  partCertificates,
  type ReleasePlace,
  SECRETS,
} from './part-certificate.ts';
import { renewedCertificate } from './renewed-certificate.ts';
import { trustInWebhooks } from './webhook-authority.ts';

/** Between two looks at what there is. */
const MAX_INTERVAL_MS = 30_000;
/** The same, where certificates live only briefly. */
const INTERVAL = 1 / 20;
const ATTEMPTS = 5;
/** How long the first certificates may take. */
const FIRST_BUDGET_MS = 60_000;
const FIRST_RETRY_MS = 1_000;

export interface GeneratedCertificatesOptions {
  readonly client: ApiClient;
  readonly place: ReleasePlace;
  readonly authorityLifetimeMs: number;
  readonly lifetimeMs: number;
  /** Where this process's own certificates are to stand. */
  readonly directories: Readonly<Partial<Record<CertifiedPart, string>>>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly now?: () => Date;
}

/** The product's own authority, and the certificates of all its parts. */
export interface GeneratedCertificates {
  /**
   * Makes what is missing, and renews everything in time from then on. Every replica does so: whoever writes a secret
   * second finds it written.
   *
   * @throws Error when the first certificates cannot be had within a minute
   */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** See {@link GeneratedCertificates}. */
export function generatedCertificates(options: GeneratedCertificatesOptions): GeneratedCertificates {
  const {
    client,
    place,
    authorityLifetimeMs,
    lifetimeMs,
    directories,
    log,
    now = () => new Date(),
  } = options;
  const intervalMs = Math.min(MAX_INTERVAL_MS, lifetimeMs * INTERVAL);
  const ending = new AbortController();
  const { signal } = ending;
  /** What stands in the directories. */
  const standing = new Map<CertifiedPart, string>();
  let working: Promise<void> = Promise.resolve();
  let trouble = '';

  async function renewAll(): Promise<void> {
    const commonName = authoritySecret(place);
    const { value: authority } = await updateSecret(
      client,
      { place, name: commonName, signal },
      async (fields) => {
        const record = await renewedAuthority(fields, {
          commonName,
          lifetimeMs: authorityLifetimeMs,
          now: now(),
        });
        return { fields: recordFields(record), value: record };
      },
    );
    // Whoever shows a certificate of a new authority must be trusted by then.
    await trustInWebhooks(client, place.release, authority.trusted, signal);
    for (const { part, secret, dnsNames } of partCertificates(place)) {
      const { value: files, isWritten } = await updateSecret(
        client,
        { place, name: secret, signal },
        async (fields) => {
          const renewed = await renewedCertificate(fields, { authority, dnsNames, lifetimeMs, now: now() });
          return { fields: renewed, value: renewed };
        },
      );
      if (isWritten) log.info({ secret, dnsNames }, 'certificate written');
      const directory = directories[part];
      const text = JSON.stringify(files);
      if (directory === undefined || standing.get(part) === text) continue;
      await writeVolume(directory, files);
      standing.set(part, text);
    }
  }

  async function attempt(): Promise<boolean> {
    try {
      await renewAll();
      trouble = '';
      return true;
    } catch (err) {
      const text = String(err);
      if (!signal.aborted && text !== trouble) log.warn({ err }, 'certificates cannot be looked after now');
      trouble = text;
      return false;
    }
  }

  async function keep(): Promise<void> {
    const turns = setInterval(intervalMs, attempt, { signal, ref: false });
    for await (const turn of turns) await turn();
  }

  return {
    async start() {
      const deadline = performance.now() + FIRST_BUDGET_MS;
      while (!(await attempt())) {
        if (performance.now() > deadline) throw new Error(`there are no certificates: ${trouble}`);
        await sleep(FIRST_RETRY_MS);
      }
      working = keep().catch(() => undefined);
    },
    async stop() {
      ending.abort();
      await working;
    },
  };
}

/** Writes what a secret is to hold, unless that is what it holds. */
async function updateSecret<Value>(
  client: ApiClient,
  { place, name, signal }: { place: ReleasePlace; name: string; signal: AbortSignal },
  wanted: (fields: SecretFields) => Promise<{ readonly fields: SecretFields; readonly value: Value }>,
): Promise<{ readonly value: Value; readonly isWritten: boolean }> {
  const path = objectPath({ resource: SECRETS, namespace: place.namespace, name });
  for (let attempt = 1; ; attempt++) {
    const secret = await readSecret(client, path, signal);
    const before = decoded(secret);
    const { fields, value } = await wanted(before);
    if (isSame(before, fields)) return { value, isWritten: false };
    try {
      await client.request({ method: 'PUT', path, body: { ...secret, data: encoded(fields) }, signal });
      return { value, isWritten: true };
    } catch (error) {
      if (!isConflict(error) || attempt === ATTEMPTS) throw error;
    }
  }
}

async function readSecret(client: ApiClient, path: string, signal: AbortSignal): Promise<KubeObject> {
  try {
    const secret = await client.request({ path, signal });
    if (isKubeObject(secret)) return secret;
    throw new Error(`${path}: the API server's answer is no object with a name`);
  } catch (cause) {
    if (!isNotFound(cause)) throw cause;
    throw new Error(`${path} is missing: the chart creates it; run helm upgrade again`, { cause });
  }
}

function decoded({ data }: KubeObject): SecretFields {
  const fields = isJsonObject(data) ? Object.entries(data) : [];
  return Object.fromEntries(
    fields.map(([name, value]) => [name, Buffer.from(String(value), 'base64').toString()]),
  );
}

function encoded(fields: SecretFields): SecretFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
  );
}

function isSame(one: SecretFields, other: SecretFields): boolean {
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && one[name] === other[name])
  );
}
