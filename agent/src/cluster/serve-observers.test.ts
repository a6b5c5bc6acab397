import { createAgentClient } from '@runtime-enforcer/rpc/agent-client';
import { testAuthority, testPair, testStore } from '@runtime-enforcer/rpc/rpc-fixture';
import { afterEach, expect, it } from 'vitest';
import { readRunOptions } from '../commands/run-options.ts';
import { createStopStack, type StopStack } from '../commands/stop-stack.ts';
import { startMetrics, type AgentMetrics } from '../metrics.ts';
import { fakeContainer, fakeReporting } from '../node/fake-kernel.ts';
import { exampleSources } from '../server/observer-example.ts';
import { serveObservers } from './serve-observers.ts';

let stops: StopStack;
let metrics: AgentMetrics;
afterEach(async () => {
  await stops.stop();
  metrics.stop();
});

it('serves both protocols of the internet, and counts who came', async () => {
  const problems: unknown[] = [];
  stops = createStopStack((name, error) => problems.push(name, error));
  metrics = startMetrics();
  const { log, lines } = fakeReporting();
  const args = ['--kubeconfig', 'none', '--grpc-mtls-enabled=false', '--grpc-port', '0'];
  const { cluster } = readRunOptions(args, {});
  if (cluster === undefined) throw new Error('expected options of a cluster');
  const authority = await testAuthority();
  const store = testStore(await testPair(authority, 'agent-1.enforcer'));
  await serveObservers({ log, stops, metrics }, cluster, store, {
    ...exampleSources(),
    containers: () => [fakeContainer({ policy: 'shop/web' })],
  });
  const port = lines.find(({ message }) => message.includes('served by gRPC'))?.fields['port'];
  if (typeof port !== 'number') throw new Error('expected the port in the log');

  const [known, stranger] = [
    await testPair(authority, 'debugger'),
    await testPair(await testAuthority(), 'debugger'),
  ];
  const list = async (address: string, pair: typeof known): Promise<readonly unknown[]> => {
    const client = createAgentClient({
      ...{ address, port, podName: 'agent-1', namespace: 'enforcer' },
      certificates: testStore(pair),
    });
    try {
      const pods: unknown[] = [];
      for await (const pod of client.listPods()) pods.push(pod);
      return pods;
    } finally {
      client.close();
    }
  };
  expect(await list('127.0.0.1', known)).toHaveLength(1);
  expect(await list('::1', known)).toHaveLength(1);
  await expect(list('127.0.0.1', stranger)).rejects.toThrow();
  await expect
    .poll(() => metrics.text(), { timeout: 5_000 })
    .toMatch(/grpc_connections_total\{result="handshake_failed"\} [1-9]/);
  const text = await metrics.text();
  expect(text).toContain('runtime_enforcer_grpc_connections_total{result="accepted"} 2');
  expect(text).toContain('runtime_enforcer_grpc_connections_total{result="refused"} 0');
  metrics.unobserve();
  expect(await metrics.text()).not.toContain('grpc_connections');
  expect(problems).toEqual([]);
});
