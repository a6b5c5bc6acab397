import { request, type RequestOptions } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerProcess } from './server-process.ts';

const READY_BUDGET_MS = 60_000;
const READY_POLL_MS = 100;
const PROBE_TIMEOUT_MS = 2_000;

/** Where a server tells over HTTPS on 127.0.0.1 that it is ready, and what its client shows and trusts. */
export type ReadyProbe = Pick<RequestOptions, 'port' | 'path' | 'ca' | 'cert' | 'key'>;

/**
 * Waits until a server answers with 200.
 *
 * @param servers those that must not end meanwhile
 * @throws Error when one of them ends, or after a minute
 */
export async function waitUntilReady(
  name: string,
  probe: ReadyProbe,
  servers: readonly ServerProcess[],
): Promise<void> {
  const end = performance.now() + READY_BUDGET_MS;
  while (!(await isReady(probe))) {
    for (const server of servers) server.assertRunning();
    if (performance.now() > end) throw new Error(`${name} is not ready within ${READY_BUDGET_MS} ms`);
    await sleep(READY_POLL_MS);
  }
}

async function isReady(probe: ReadyProbe): Promise<boolean> {
  return await new Promise((resolve) => {
    const asked = request({ ...probe, host: '127.0.0.1', timeout: PROBE_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.end();
  });
}
