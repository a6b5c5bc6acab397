import { describe, expect, it } from 'vitest';
import { API_VERSION } from './keys.ts';
import { reviewProposal } from './proposal-review.ts';
import { parseWorkloadPolicyProposal } from './workload-policy-proposal.ts';

const observation = (path: string, more: object = {}) => ({
  containerName: 'app',
  executablePath: path,
  count: 7,
  firstSeen: '2026-01-01T00:00:00Z',
  lastSeen: '2026-01-02T00:00:00Z',
  origins: ['entrypoint'],
  nodes: ['n1', 'n2'],
  ...more,
});

function review(
  paths: readonly string[],
  observations: readonly object[],
  conditions: readonly object[] = [],
) {
  const parsed = parseWorkloadPolicyProposal({
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicyProposal',
    metadata: { name: 'deploy-web' },
    spec: { rulesByContainer: { app: { executables: { allowed: paths } } } },
    status: { observations, conditions },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return reviewProposal(parsed.value);
}

describe('reviewProposal', () => {
  it.each<[string, string, object, readonly string[]]>([
    ['nothing', '/app/server', {}, []],
    ['a shell', '/bin/sh', {}, ['dangerous']],
    ['a path from kubectl exec alone', '/usr/bin/id', { origins: ['exec'] }, ['interactive']],
    ['a path from the entrypoint as well', '/usr/bin/id', { origins: ['exec', 'entrypoint'] }, []],
    ['a path that was seen once', '/usr/bin/id', { count: 1 }, ['once']],
    ['a path of one node', '/usr/bin/id', { nodes: ['n1'] }, ['oneNode']],
    ['a path in /tmp', '/tmp/x', {}, ['writable']],
    [
      'all at once',
      '/tmp/bash',
      { origins: ['exec'], count: 1 },
      ['dangerous', 'writable', 'interactive', 'once'],
    ],
  ])('finds %s', (_, path, more, concerns) => {
    const result = review([path, '/other'], [observation(path, more), observation('/other')]);
    expect(result.paths[0]?.concerns).toEqual(concerns);
    expect(result.paths[1]?.concerns).toEqual([]);
  });

  it('does not hold one node against a path where all were seen on one', () => {
    expect(review(['/a'], [observation('/a', { nodes: ['n1'] })]).paths[0]?.concerns).toEqual([]);
  });

  it('tells paths without evidence, and counts only warnings', () => {
    const result = review(['/a', '/bin/sh', '/c'], [observation('/c', { count: 1 })]);
    expect(result.paths.map(({ concerns }) => concerns)).toEqual([
      ['noEvidence'],
      ['dangerous', 'noEvidence'],
      ['once'],
    ]);
    expect(result.warnings).toBe(1);
  });

  it('tells that learning was full', () => {
    const full = { type: 'Full', status: 'True', reason: 'PathLimitReached', message: 'full' };
    const at = { lastTransitionTime: '2026-01-01T00:00:00Z' };
    expect(review(['/a'], [], [{ ...full, ...at }]).full).toBe(true);
    expect(review(['/a'], [], [{ ...full, ...at, status: 'False' }]).full).toBe(false);
  });
});
