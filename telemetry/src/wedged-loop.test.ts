import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';

const ENDPOINT = new URL('health-endpoint.ts', import.meta.url).href;
/** Serves probes, and lets nothing else run from the first line that it reads. */
const PROGRAM = `
  const { createHealthEndpoint } = await import(${JSON.stringify(ENDPOINT)});
  const endpoint = createHealthEndpoint({ host: '127.0.0.1', port: 0 }, { live: () => [], ready: () => [] });
  console.log(await endpoint.start());
  process.stdin.once('data', () => { console.log('wedged'); for (;;); });
`;
/** What kubelet gives a probe when the chart says nothing else. */
const PROBE_TIMEOUT_MS = 1_000;

it('a program whose event loop is wedged does not answer its probe, so that it is restarted', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface(child.stdout);
  const [port] = (await once(lines, 'line')) as [string];
  const probe = (): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
  await expect.poll(async () => (await probe()).status, { timeout: 8_000 }).toBe(200);
  child.stdin.write('wedge\n');
  expect(await once(lines, 'line')).toEqual(['wedged']);
  await expect(probe()).rejects.toThrow(/timeout|aborted/i);
}, 20_000);
