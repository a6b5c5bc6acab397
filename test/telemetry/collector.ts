import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type CertifiedKey, createAuthority, issueCertificate } from '@runtime-enforcer/certs/authority';
import { freePorts } from '../cluster/port.ts';
import { type ServerProcess, startServer } from '../cluster/server-process.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { collectorBinary } from './collector-binary.ts';

/** What the chart mounts into the bundled collector. */
const CONFIGURATION = join(REPOSITORY, 'charts/runtime-enforcer/files/otel-collector.yaml');
const START_MS = 20_000;
const VALID_MS = 3_600_000;

/** A running collector with the bundled configuration. */
export interface Collector {
  readonly port: number;
  /** Where Prometheus would scrape. */
  readonly metricsPort: number;
  readonly process: ServerProcess;
  /** What Prometheus would scrape. */
  metrics(): Promise<string>;
  /** A series such as `runtime_enforcer_violations_total{action="monitor",…}` by its labels in any order. */
  value(name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined>;
  stop(): Promise<void>;
}

/** Directories of certificates by one authority, in the files of a mounted secret. */
export interface CollectorCertificates {
  readonly authority: CertifiedKey;
  readonly collector: string;
  readonly agent: string;
}

/** Makes an authority, and certificates of a collector on this machine and of an agent. */
export async function collectorCertificates(directory: string): Promise<CollectorCertificates> {
  const authority = await createAuthority({ commonName: 'test', now: new Date(), validForMs: VALID_MS });
  const paths = { collector: join(directory, 'collector'), agent: join(directory, 'agent') };
  await writeCertificate(paths.collector, authority, 'collector', 'server');
  await writeCertificate(paths.agent, authority, 'agent', 'client');
  return { authority, ...paths };
}

/** Writes `tls.crt`, `tls.key` and `ca.crt`, each whole at once. */
export async function writeCertificate(
  directory: string,
  authority: CertifiedKey,
  name: string,
  usage: 'server' | 'client',
): Promise<void> {
  const pair = await issueCertificate(authority, {
    ...{ commonName: name, now: new Date(), validForMs: VALID_MS, usages: [usage] },
    ...(usage === 'server' ? { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] } : { dnsNames: [name] }),
  });
  await mkdir(directory, { recursive: true });
  const files = { 'tls.crt': pair.certificate, 'tls.key': pair.key, 'ca.crt': authority.certificate };
  for (const [file, text] of Object.entries(files)) {
    await writeFile(join(directory, `${file}.new`), text, { mode: 0o600 });
    await rename(join(directory, `${file}.new`), join(directory, file));
  }
}

/** Starts a collector and waits until it serves. Rejects with the end of its log. */
export async function startCollector(
  directory: string,
  certificates: string,
  port?: number,
): Promise<Collector> {
  const program = await collectorBinary(printProgress);
  const [otlpPort = 0, metricsPort = 0, healthPort = 0] = await freePorts(3);
  const otlp = port ?? otlpPort;
  const process = startServer(
    'otelcol',
    [
      ...['env', `OTLP_ADDRESS=127.0.0.1:${otlp}`, `METRICS_ADDRESS=127.0.0.1:${metricsPort}`],
      ...[`HEALTH_ADDRESS=127.0.0.1:${healthPort}`, `CERTIFICATES=${certificates}`],
      ...[program, '--config', CONFIGURATION],
    ],
    join(directory, 'otelcol.log'),
  );
  const metrics = async (): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`);
    return await response.text();
  };
  const deadline = performance.now() + START_MS;
  while (!(await isHealthy(healthPort))) {
    if (performance.now() > deadline) {
      const log = await process.logTail();
      await process.stop();
      throw new Error(`the collector does not serve: ${log}`);
    }
    await delay(50);
  }
  return {
    port: otlp,
    metricsPort,
    process,
    metrics,
    async value(name, labels) {
      for (const line of (await metrics()).split('\n')) {
        const match = /^(\w+)\{(.*)\} (\S+)$/.exec(line);
        if (match?.[1] !== name) continue;
        const pairs = [...(match[2] ?? '').matchAll(/(\w+)="([^"]*)"/g)];
        const found = Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, value]));
        if (Object.entries(labels).every(([key, value]) => found[key] === value)) return Number(match[3]);
      }
      return undefined;
    },
    stop: () => process.stop(),
  };
}

async function isHealthy(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/`)).ok;
  } catch {
    return false;
  }
}
