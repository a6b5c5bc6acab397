import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { parseLabelSelector } from '@runtime-enforcer/kube/label-selector-text';
import { describe, expect, it } from 'vitest';
import type { ReportedPod } from '@runtime-enforcer/rpc/reported';
import { type AgentPod, compareCluster } from './look.ts';

const AGENT_LABELS = { 'app.kubernetes.io/component': 'agent' };

function pod(
  name: string,
  more: { labels?: object; namespace?: string; node?: string; created?: string } = {},
) {
  const { labels = {}, namespace = 'enforcer', node = 'node-1', created = '2026-01-31T12:00:00Z' } = more;
  return {
    metadata: { name, namespace, uid: `uid-${name}`, labels, creationTimestamp: created },
    spec: { nodeName: node },
    status: { phase: 'Running', podIP: '10.0.0.1', containerStatuses: [] },
  };
}

function reported(name: string): ReportedPod {
  return {
    ...{ uid: `uid-${name}`, name, namespace: 'enforcer', workloadKind: 'Pod', workloadName: name },
    ...{ labels: new Map(), containers: [], omitted: 0 },
  };
}

/** A cluster whose agents answer with what is told for each call. */
function cluster(items: readonly object[], answers: Readonly<Record<string, (ReportedPod[] | Error)[]>>) {
  const asked: string[] = [];
  const client: ApiClient = {
    request: () => Promise.resolve({ metadata: { resourceVersion: '1' }, items }),
    stream: () => Promise.reject(new Error('not asked for')),
  };
  const connect = ({ name }: AgentPod) => ({
    async *listPods() {
      asked.push(name);
      const of = answers[name] ?? [];
      const answer = await Promise.resolve(of.length > 1 ? of.shift() : of[0]);
      if (answer instanceof Error) throw answer;
      yield* answer ?? [];
    },
    async *listBindings() {
      yield* await Promise.resolve([]);
    },
    close: () => undefined,
  });
  const compare = async () =>
    await compareCluster({
      ...{ client, connect, namespace: 'enforcer', settleMs: 1 },
      selector: parseLabelSelector('app.kubernetes.io/component=agent'),
      signal: new AbortController().signal,
    });
  return { compare, asked };
}

describe('compareCluster', () => {
  it('asks the agent of each node once where everything is aligned', async () => {
    const nodes = ['node-1', 'node-2', 'node-3'];
    const pods = nodes.map((node) => pod(`agent-${node}`, { labels: AGENT_LABELS, node }));
    const { compare, asked } = cluster(pods, {});
    const report = await compare();
    expect(report).toMatchObject({ nodes: 3, agentCaches: 3 });
    expect(report.reports.map(({ node, state }) => [node, state])).toEqual(
      nodes.map((node) => [node, 'aligned']),
    );
    expect(asked).toHaveLength(3);
  });

  it('tells only what still differs a moment later', async () => {
    const pods = [pod('agent-1', { labels: AGENT_LABELS })];
    const passing = cluster(pods, { 'agent-1': [[reported('gone')], []] });
    expect((await passing.compare()).reports).toMatchObject([{ state: 'aligned' }]);
    const staying = cluster(pods, { 'agent-1': [[reported('stray')]] });
    expect((await staying.compare()).reports).toMatchObject([
      { state: 'differences', differences: [{ kind: 'pod-unexpected', pod: 'enforcer/stray (uid-stray)' }] },
    ]);
  });

  it('asks of two agents of a node the newer first, and the other where that one does not answer', async () => {
    const pods = [
      pod('old', { labels: AGENT_LABELS, created: '2026-01-31T12:00:00Z' }),
      pod('new', { labels: AGENT_LABELS, created: '2026-01-31T13:00:00Z' }),
    ];
    const { compare, asked } = cluster(pods, { new: [new Error('not yet')] });
    expect((await compare()).reports).toMatchObject([{ state: 'aligned' }]);
    expect(asked).toEqual(['new', 'old']);
  });

  it('takes no pod of another namespace for an agent', async () => {
    const forged = pod('agent-1', { labels: AGENT_LABELS, namespace: 'tenant' });
    const { compare, asked } = cluster([forged], {});
    expect((await compare()).reports).toMatchObject([
      { state: 'no-agent-cache', reason: 'no agent runs on the node' },
    ]);
    expect(asked).toEqual([]);
  });

  it('tells why an agent gives no answer', async () => {
    const pods = [pod('agent-1', { labels: AGENT_LABELS })];
    const { compare } = cluster(pods, { 'agent-1': [new Error('connection refused')] });
    expect((await compare()).reports).toMatchObject([
      { state: 'no-agent-cache', reason: 'connection refused' },
    ]);
  });
});
