import { Readable } from 'node:stream';
import type { ApiRequest } from '@runtime-enforcer/kube/api-client';
import { ConnectionError } from '@runtime-enforcer/kube/api-error';
import { describe, expect, it } from 'vitest';
import type { Connection } from '../cluster/connection.ts';
import { gatherFacts } from './gather-facts.ts';

const AGENT = {
  metadata: {
    ...{ name: 'agent-1', namespace: 'runtime-enforcer' },
    labels: { 'app.kubernetes.io/component': 'agent' },
  },
  spec: {
    nodeName: 'node-1',
    containers: [{ name: 'agent', ports: [{ name: 'metrics', containerPort: 8080 }] }],
  },
  status: { phase: 'Running' },
};
const PROXY = '/api/v1/namespaces/runtime-enforcer/pods';
const SECURE = `${PROXY}/https%3Aagent-1%3A8080/proxy/metrics`;
const PLAIN = `${PROXY}/agent-1%3A8080/proxy/metrics`;

/** What is known of the one agent's metrics, and where they were asked for. */
async function metricsOf(answer: (path: string) => Promise<Readable>, phase = 'Running') {
  const asked: string[] = [];
  const agent = { ...AGENT, status: { phase } };
  const client = {
    async request({ path }: ApiRequest) {
      const items = path === '/api/v1/pods' ? [agent] : [];
      return await Promise.resolve({ kind: 'List', metadata: { resourceVersion: '1' }, items });
    },
    async stream({ path }: ApiRequest) {
      asked.push(path);
      return await answer(path);
    },
  };
  const connection: Connection = {
    ...{ client, namespace: 'default', server: '' },
    close: async () => await Promise.resolve(),
  };
  const { agentMetrics } = await gatherFacts(connection, new Date());
  return { asked, known: agentMetrics.get('runtime-enforcer/agent-1') };
}

const text = async (content: string): Promise<Readable> =>
  await Promise.resolve(Readable.from([Buffer.from(content)]));
const refuse = async (path: string): Promise<Readable> =>
  await Promise.reject(new ConnectionError(`GET ${path}`, new Error('EOF')));

describe('gatherFacts', () => {
  it('reads the metrics of an agent over TLS', async () => {
    const { asked, known } = await metricsOf(async () => await text('up 1\n'));
    expect(known).toEqual({ ok: true, value: 'up 1\n' });
    expect(asked).toEqual([SECURE]);
  });

  it('reads them without, where an agent speaks no TLS', async () => {
    const { asked, known } = await metricsOf(async (path) =>
      path === SECURE ? await refuse(path) : await text('up 1\n'),
    );
    expect(known).toEqual({ ok: true, value: 'up 1\n' });
    expect(asked).toEqual([SECURE, PLAIN]);
  });

  it('takes it as it comes where neither is answered, and where the answer is too long', async () => {
    expect((await metricsOf(refuse)).known).toEqual({
      ok: false,
      why: 'unable to connect to the server: EOF',
    });
    const long = await metricsOf(async () => await text('x'.repeat(5_000_000)));
    expect(long.known).toMatchObject({ ok: false, why: 'they are longer than 4194304 bytes' });
  });

  it('asks no agent that does not run', async () => {
    const { asked, known } = await metricsOf(async () => await text('up 1\n'), 'Pending');
    expect(known).toBeUndefined();
    expect(asked).toEqual([]);
  });
});
