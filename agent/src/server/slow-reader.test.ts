import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { CertifiedKey } from '@runtime-enforcer/certs/authority';
import { createAgentClient } from '@runtime-enforcer/rpc/agent-client';
import { observerMethods } from '@runtime-enforcer/rpc/observer-service';
import { rawFrame, rawHeaders, rawHttp2 } from '@runtime-enforcer/rpc/raw-client-fixture';
import { NO_CURSOR } from '@runtime-enforcer/rpc/reported';
import { testAuthority, testLog, testPair, testStore } from '@runtime-enforcer/rpc/rpc-fixture';
import { createObserverServer } from './observer-server.ts';
import { exampleSources, exampleViolation } from './observer-example.ts';

const VIOLATIONS = 100_000;
const EVERYTHING = { policies: NO_CURSOR, violations: NO_CURSOR, observations: NO_CURSOR };

let authority: CertifiedKey;
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await testAuthority();
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A node with as many violations, and how many pages of them have been made. */
async function start(writeMs: number) {
  const sources = exampleSources();
  for (let index = 0; index < VIOLATIONS; index++) {
    const executablePath = `/opt/${'x'.repeat(300)}/${index}`;
    sources.violations.put(String(index), exampleViolation({ executablePath }));
  }
  const changedSince = vi.spyOn(sources.violations, 'changedSince');
  const log = testLog();
  const server = createObserverServer({
    sources,
    ...{ host: '127.0.0.1', port: 0, log, limits: { writeMs, gatherMs: 5 } },
    certificates: testStore(await testPair(authority, 'agent-1.enforcer')),
  });
  const port = await server.start();
  server.setServing(true);
  stops.push(() => server.stop());
  const pair = await testPair(authority, 'controller');
  const client = createAgentClient({
    ...{ address: '127.0.0.1', port, podName: 'agent-1', namespace: 'enforcer' },
    certificates: testStore(pair),
  });
  stops.push(() => client.close());
  return { sources, log, port, pair, client, pages: () => changedSince.mock.calls.length };
}

it('makes the agent hold few pages for each reader that does not read, and nobody wait', async () => {
  const { port, pair, client, pages, log } = await start(2_000);
  const sessions = await Promise.all(Array.from({ length: 4 }, () => rawHttp2(port, pair)));
  for (const session of sessions) {
    stops.push(() => session.destroy());
    const stream = session.request(rawHeaders(observerMethods.watch.path));
    stream.on('error', () => undefined);
    stream.end(rawFrame(observerMethods.watch.requestSerialize(EVERYTHING)));
  }
  await sleep(500);
  // Of each, what the connection could take, 64 KiB, and one that waits.
  const made = pages();
  expect(made).toBeLessThanOrEqual(16);
  await expect(client.isServing()).resolves.toBe(true);
  await vi.waitFor(
    () =>
      expect(log.lines.filter(({ message }) => message.includes('its client does not read'))).toHaveLength(4),
    { timeout: 10_000 },
  );
  await vi.waitFor(() => expect(sessions.every(({ destroyed }) => destroyed)).toBe(true));
  expect(pages()).toBe(made);
});

it('gives a reader that takes its time everything, in pages that any gRPC client accepts', async () => {
  const { client, pages, sources } = await start(60_000);
  const ended = new AbortController();
  stops.push(() => ended.abort());
  let told = 0;
  let largest = 0;
  for await (const event of client.watch({ signal: ended.signal })) {
    if (event.kind === 'lost') throw event.error;
    largest = Math.max(largest, observerMethods.watch.responseSerialize(event.report).length);
    told += event.report.violations?.entries.length ?? 0;
    if (told === 1_000) await sleep(1_000);
    if (event.report.violations?.more !== true) break;
  }
  expect(told).toBe(VIOLATIONS);
  expect(sources.violations.size.keys).toBe(VIOLATIONS);
  expect(pages()).toBeGreaterThan(100);
  expect(largest).toBeLessThan(512 * 1024);
}, 180_000);
