import { describe, expect, it } from 'vitest';
import type { ExecutablePath } from './executable-path.ts';
import { type ExplainedExec, explainExec } from './explain.ts';
import { API_VERSION, POLICY_LABEL } from './keys.ts';
import { parseWorkloadPolicy, type WorkloadPolicy } from './workload-policy.ts';

function policy(spec: object, status?: object): WorkloadPolicy {
  const parsed = parseWorkloadPolicy({
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicy',
    metadata: { name: 'web', namespace: 'shop' },
    spec: {
      mode: 'protect',
      rulesByContainer: { app: { executables: { allowed: ['/usr/bin/ls', '/app'] } } },
      ...spec,
    },
    ...(status && { status }),
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.value;
}

const explain = (exec: Partial<ExplainedExec>) =>
  explainExec({
    podName: 'web-0',
    labels: new Map([[POLICY_LABEL, 'web']]),
    nodeName: 'node-1',
    container: 'app',
    path: '/usr/bin/ls' as ExecutablePath,
    policy: policy({}),
    ...exec,
  });

describe('explainExec', () => {
  it.each<[string, string, Partial<ExplainedExec>]>([
    ['a path on the list', 'allowed', {}],
    ['a path that is not', 'denied', { path: '/usr/bin/ps' as ExecutablePath }],
    [
      'the same in monitor',
      'reported',
      { path: '/usr/bin/ps' as ExecutablePath, policy: policy({ mode: 'monitor' }) },
    ],
    ['a container that is not named', 'unrestricted', { container: 'debugger' }],
    [
      'a container that must be named',
      'denied',
      { container: 'debugger', policy: policy({ unlistedContainers: 'deny' }) },
    ],
    ['a pod without the label', 'unrestricted', { labels: new Map() }],
    ['a pod with an empty label', 'unrestricted', { labels: new Map([[POLICY_LABEL, '']]) }],
    ['a label that no policy can match', 'unbound', { labels: new Map([[POLICY_LABEL, 'A B']]) }],
    ['a policy that does not exist', 'unbound', { policy: 'missing' }],
  ])('%s is %s', (_, outcome, exec) => {
    const explanation = explain(exec);
    expect(explanation.outcome).toBe(outcome);
    expect(explanation.steps.length).toBeGreaterThan(0);
  });

  it('asks the deciding questions in their order', () => {
    expect(explain({ path: '/bin/ls' as ExecutablePath }).steps).toEqual([
      { question: 'Does pod web-0 name a policy in its label?', answer: 'yes: web' },
      { question: 'Does WorkloadPolicy web exist?', answer: 'yes, in mode protect' },
      { question: 'Does the policy name container app?', answer: 'yes, with 2 allowed paths' },
      { question: 'Is /bin/ls one of them?', answer: 'no' },
    ]);
  });

  it('names listed paths that the kernel may mean', () => {
    expect(explain({ path: '/bin/ls' as ExecutablePath }).sameName).toEqual(['/usr/bin/ls']);
    expect(explain({ path: '/s' as ExecutablePath }).sameName).toEqual([]);
  });

  it('tells that the node is not there yet', () => {
    const status = {
      nodesWithIssues: { 'node-1': { code: 'Failed', message: 'the table is full' } },
      nodesTransitioning: [{ nodeName: 'node-2', code: 'Transitioning' }],
    };
    const loading = policy({}, status);
    expect(explain({ policy: loading }).nodeIssue).toEqual({ code: 'Failed', message: 'the table is full' });
    expect(explain({ policy: loading, nodeName: 'node-2' }).nodeIssue?.code).toBe('Transitioning');
    expect(explain({ policy: loading, nodeName: 'node-3' })).not.toHaveProperty('nodeIssue');
    expect(explain({ policy: loading, nodeName: undefined }).steps).toHaveLength(4);
  });
});
