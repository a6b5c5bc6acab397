import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCumulativeLog } from '@runtime-enforcer/agent/violations/cumulative-log';
import type { NodeViolation } from '@runtime-enforcer/agent/violations/node-violation';
import { VIOLATION_SCOPE, violationEvent } from '@runtime-enforcer/agent/violations/violation-export';
import { createViolationLog } from '@runtime-enforcer/agent/violations/violation-log';
import { createAuthority } from '@runtime-enforcer/certs/authority';
import { certificateStore } from '@runtime-enforcer/certs/certificate-store';
import { createLogExport, type LogExport } from '@runtime-enforcer/telemetry/log-export';
import { tlsFromFiles, tlsFromStore, type TlsSource } from '@runtime-enforcer/telemetry/tls-source';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import {
  type Collector,
  collectorCertificates,
  type CollectorCertificates,
  startCollector,
  writeCertificate,
} from './collector.ts';

let directory: string;
let certificates: CollectorCertificates;
let collector: Collector;
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'telemetry-'));
  certificates = await collectorCertificates(directory);
  collector = await startCollector(directory, certificates.collector);
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(async () => {
  await collector.stop();
  await rm(directory, { recursive: true });
});

const silent = (): void => undefined;
const LOG = { debug: silent, info: silent, warn: silent, error: silent };

function exportWith(tls: TlsSource | undefined, endpoint = `https://localhost:${collector.port}`): LogExport {
  const logExport = createLogExport({
    target: { protocol: 'grpc', endpoint, ...(tls !== undefined && { tls }) },
    ...{ scope: VIOLATION_SCOPE, resource: { 'service.name': 'runtime-enforcer-agent' }, log: LOG },
    ...{ timeoutMs: 2_000, gatherMs: 10 },
  });
  stops.push(() => logExport.stop(0));
  return logExport;
}

async function agentTls(): Promise<TlsSource> {
  const store = certificateStore({ directory: certificates.agent, onRefused: silent });
  await store.start();
  stops.push(() => store.stop());
  return tlsFromStore(store);
}

function violation(more: Partial<NodeViolation>): NodeViolation {
  const observed = new Date().toISOString();
  return {
    ...{
      namespace: 'default',
      podName: 'web-1',
      containerName: 'main',
      containerId: 'c1',
      nodeName: 'node-1',
    },
    ...{ policyName: 'deploy-web', executablePath: '/bin/ps', action: 'monitor', occurrences: 1 },
    ...{ firstObservedTimestamp: observed, lastObservedTimestamp: observed },
    ...more,
  };
}

const series = (labels: Record<string, string>) => () =>
  collector.value('runtime_enforcer_violations_total', labels);

it('counts violations by policy, namespace, action and node, and by nothing else', async () => {
  const logExport = exportWith(await agentTls());
  const log = createViolationLog({
    log: createCumulativeLog<NodeViolation>({ incarnation: 'test' }),
    onChange: (changed, occurrences) => logExport.emit(violationEvent(changed, occurrences)),
  });
  const line = (path: string, occurrences: number, action: 'monitor' | 'protect') =>
    log.write({
      ...violation({ executablePath: path, occurrences, action }),
      ...{ event: 'policy_violation', time: new Date().toISOString(), origin: 'exec' },
      ...{ image: 'web:1', workloadKind: 'Deployment', workloadName: 'web' },
    });
  line('/bin/ps', 1, 'monitor');
  line('/bin/ps', 5, 'monitor');
  line('/bin/\\xff', 3, 'protect');
  await expect.poll(series({ action: 'monitor', policy_name: 'deploy-web' })).toBe(5);
  await expect.poll(series({ action: 'protect', policy_name: 'deploy-web' })).toBe(3);
  const text = await collector.metrics();
  const lines = text.split('\n').filter((each) => each.startsWith('runtime_enforcer_violations_total{'));
  expect(lines).toEqual([
    'runtime_enforcer_violations_total{action="monitor",k8s_namespace_name="default",node_name="node-1",' +
      'policy_name="deploy-web"} 5',
    'runtime_enforcer_violations_total{action="protect",k8s_namespace_name="default",node_name="node-1",' +
      'policy_name="deploy-web"} 3',
  ]);
  expect(logExport.counts()).toMatchObject({ exported: { records: 3, occurrences: 8 }, failures: 0 });
});

it('counts exactly what was sent, in many batches', async () => {
  const logExport = exportWith(await agentTls());
  for (let index = 0; index < 3_000; index++) {
    logExport.emit(
      violationEvent(violation({ policyName: 'many', containerId: `c${index}` }), (index % 7) + 1),
    );
    if (index % 1_000 === 999) await expect.poll(() => logExport.waiting).toBe(0);
  }
  await expect.poll(() => logExport.waiting).toBe(0);
  const { exported, lost } = logExport.counts();
  expect(exported.records).toBe(3_000);
  expect(lost.queue_full.records).toBe(0);
  await expect.poll(series({ policy_name: 'many' })).toBe(exported.occurrences);
});

it('counts acknowledgements apart', async () => {
  const logExport = exportWith(await agentTls());
  const { attributes } = violationEvent(violation({ policyName: 'acknowledged' }), 1);
  logExport.emit({ name: 'policy_violation_acknowledged', severity: 'INFO', attributes });
  await expect
    .poll(() => collector.value('runtime_enforcer_acknowledge_total', { policy_name: 'acknowledged' }))
    .toBe(1);
  expect(await series({ policy_name: 'acknowledged' })()).toBeUndefined();
});

it('takes nothing from whom its authority does not know', async () => {
  const authority = await createAuthority({ commonName: 'other', now: new Date(), validForMs: 600_000 });
  const foreign = join(directory, 'foreign');
  await writeCertificate(foreign, { ...authority }, 'agent', 'client');
  const files = { authorities: join(certificates.agent, 'ca.crt') };
  const strangers = [
    undefined,
    await tlsFromFiles(files, silent),
    await tlsFromFiles(
      { ...files, certificate: join(foreign, 'tls.crt'), key: join(foreign, 'tls.key') },
      silent,
    ),
    // And whom the agent's authority does not know gets nothing.
    await tlsFromFiles({ authorities: join(foreign, 'ca.crt') }, silent),
  ];
  for (const tls of strangers) {
    const logExport = exportWith(tls);
    stops.push(() => tls?.stop());
    logExport.emit(violationEvent(violation({ policyName: 'stranger' }), 1));
    await expect.poll(() => logExport.counts().failures, { timeout: 10_000 }).toBeGreaterThan(0);
    expect(logExport.counts().exported.records).toBe(0);
  }
  expect(await series({ policy_name: 'stranger' })()).toBeUndefined();
});

it('goes on when the authority is replaced at both ends, without a restart of the agent', async () => {
  const place = join(directory, 'rotated');
  const first = await collectorCertificates(place);
  let rotated = await startCollector(directory, first.collector);
  const tls = await tlsFromFiles(
    {
      authorities: join(first.agent, 'ca.crt'),
      certificate: join(first.agent, 'tls.crt'),
      key: join(first.agent, 'tls.key'),
    },
    silent,
    50,
  );
  stops.push(() => tls.stop());
  const logExport = exportWith(tls, `localhost:${rotated.port}`);
  logExport.emit(violationEvent(violation({ policyName: 'before' }), 1));
  await expect.poll(() => logExport.counts().exported.records).toBe(1);
  await rotated.stop();
  await collectorCertificates(place);
  rotated = await startCollector(directory, first.collector, rotated.port);
  stops.push(() => rotated.stop());
  logExport.emit(violationEvent(violation({ policyName: 'after' }), 1));
  await expect.poll(() => logExport.counts().exported.records, { timeout: 20_000 }).toBe(2);
  expect(await rotated.value('runtime_enforcer_violations_total', { policy_name: 'after' })).toBe(1);
});

it('loses nothing that fits when the collector restarts, and says what does not arrive while it hangs', async () => {
  const hanging = await startCollector(directory, certificates.collector);
  stops.push(() => hanging.stop());
  const logExport = exportWith(await agentTls(), `localhost:${hanging.port}`);
  logExport.emit(violationEvent(violation({ policyName: 'hanging' }), 1));
  await expect.poll(() => logExport.counts().exported.records).toBe(1);
  hanging.process.pause();
  const start = performance.now();
  for (let index = 0; index < 100; index++)
    logExport.emit(violationEvent(violation({ policyName: 'hanging' }), 2));
  expect(performance.now() - start).toBeLessThan(1_000);
  await expect
    .poll(() => logExport.counts().lost.unconfirmed, { timeout: 15_000 })
    .toEqual({
      records: 100,
      occurrences: 200,
    });
  hanging.process.resume();
  await expect
    .poll(
      () => {
        logExport.emit(violationEvent(violation({ policyName: 'again' }), 1));
        return hanging.value('runtime_enforcer_violations_total', { policy_name: 'again' });
      },
      { timeout: 15_000, interval: 500 },
    )
    .toBeGreaterThan(0);
});
