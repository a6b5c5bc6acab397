import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../cluster/port.ts';
import { type ServerProcess, startServer } from '../cluster/server-process.ts';
import { eventually } from '../runtime/eventually.ts';
import { debianRoot } from '../vm/debian-root.ts';
import { type Progress, printProgress } from '../vm/progress.ts';

const PROMETHEUS = { kind: 'prometheus', title: 'Prometheus', suite: 'trixie', packages: ['prometheus'] };
const POLL_MS = 500;
const READY_BUDGET_MS = 30_000;

/** An alert as Prometheus holds it. */
export interface Alert {
  readonly state: 'pending' | 'firing';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A Prometheus of this machine that scrapes and judges every second. */
export interface Prometheus {
  alerts(): Promise<readonly Alert[]>;
  stop(): Promise<void>;
}

/** Prometheus as Debian packages it, unpacked into the cache. @returns the program's path */
export async function prometheusBinary(progress: Progress): Promise<string> {
  return join(await debianRoot(PROMETHEUS, progress), 'usr/bin/prometheus');
}

/**
 * @param directory for its files
 * @param targets `ADDRESS:PORT` of what it scrapes
 * @param rules groups of rules, as YAML
 */
export async function startPrometheus(
  directory: string,
  targets: readonly string[],
  rules: string,
): Promise<Prometheus> {
  const program = await prometheusBinary(printProgress);
  const [port = 0] = await freePorts(1);
  const config = join(directory, 'prometheus.json');
  await writeFile(join(directory, 'rules.yaml'), rules);
  await writeFile(
    config,
    JSON.stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: ['rules.yaml'],
      scrape_configs: [{ job_name: 'collector', static_configs: [{ targets }] }],
    }),
  );
  const server: ServerProcess = startServer(
    'prometheus',
    [
      program,
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(directory, 'prometheus')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    join(directory, 'prometheus.log'),
  );
  const url = `http://127.0.0.1:${port}`;
  try {
    await eventually(
      'Prometheus is ready',
      async () => {
        await delay(POLL_MS);
        return (await fetch(`${url}/-/ready`)).ok ? true : undefined;
      },
      READY_BUDGET_MS,
    );
  } catch (cause) {
    await server.stop('SIGKILL');
    throw new Error(`Prometheus does not serve: ${await server.logTail()}`, { cause });
  }
  return {
    async alerts() {
      const response = await fetch(`${url}/api/v1/alerts`);
      const { data } = (await response.json()) as { readonly data: { readonly alerts: readonly Alert[] } };
      return data.alerts;
    },
    stop: async () => await server.stop(),
  };
}
