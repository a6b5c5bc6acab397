import { expect, it } from 'vitest';
import { createMetricsServer } from './metrics-server.ts';

it('serves the metrics, and nothing else', async () => {
  let fails = false;
  const text = (): Promise<string> =>
    fails ? Promise.reject(new Error('x')) : Promise.resolve('a_metric 1\n');
  const server = createMetricsServer({ host: '127.0.0.1', port: 0 }, { text, contentType: 'text/plain' });
  const port = await server.start();
  const get = async (path: string, method = 'GET'): Promise<[number, string]> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    return [response.status, await response.text()];
  };
  expect(await get('/metrics')).toEqual([200, 'a_metric 1\n']);
  expect(await get('/')).toEqual([404, 'the metrics are at /metrics\n']);
  expect((await get('/metrics', 'POST'))[0]).toBe(404);
  const second = createMetricsServer({ host: '127.0.0.1', port }, { text, contentType: 'text/plain' });
  await expect(second.start()).rejects.toThrow(
    `cannot serve metrics at --metrics-bind-address 127.0.0.1:${port}`,
  );
  fails = true;
  expect(await get('/metrics')).toEqual([500, 'the metrics could not be read\n']);
  await server.stop();
});
