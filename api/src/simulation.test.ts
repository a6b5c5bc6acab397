import { describe, expect, it } from 'vitest';
import { API_VERSION } from './keys.ts';
import { execsOfProposal, execsOfViolations, type RecordedExec, simulate } from './simulation.ts';
import type { ViolationRecord } from './violation.ts';
import { parseWorkloadPolicy } from './workload-policy.ts';
import { parseWorkloadPolicyProposal } from './workload-policy-proposal.ts';

function spec(more: object = {}) {
  const parsed = parseWorkloadPolicy({
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicy',
    metadata: { name: 'web' },
    spec: {
      mode: 'protect',
      rulesByContainer: {
        app: { executables: { allowed: ['/usr/bin/ls'] } },
        loose: { executables: { allowed: [], otherMountNamespaces: 'unchecked' } },
      },
      ...more,
    },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.value.spec;
}

const exec = (more: Partial<RecordedExec>): RecordedExec => ({
  containerName: 'app',
  executablePath: '/usr/bin/ls',
  occurrences: 1,
  ...more,
});

describe('simulate', () => {
  it('counts equal execs together, violations first', () => {
    const result = simulate(spec(), [
      exec({ occurrences: 2 }),
      exec({ executablePath: '/usr/bin/ps', occurrences: 3 }),
      exec({ occurrences: 5 }),
    ]);
    expect(result.execs.map(({ executablePath, occurrences }) => [executablePath, occurrences])).toEqual([
      ['/usr/bin/ps', 3],
      ['/usr/bin/ls', 7],
    ]);
    expect(result.passing).toEqual({ execs: 1, occurrences: 7 });
    expect(result.violating).toEqual({ execs: 1, occurrences: 3 });
  });

  it.each<[string, Partial<RecordedExec>, object]>([
    [
      'a deleted file',
      { executablePath: '/usr/bin/ls (deleted)', reason: 'Unlinked' },
      { reason: 'Unlinked' },
    ],
    ['a file in memory', { executablePath: '/memfd:x', reason: 'Memfd' }, { reason: 'Memfd' }],
    ['a mount that imitates', { reason: 'ForeignMount' }, { reason: 'ForeignMount' }],
    ['another mount namespace', { reason: 'OtherMountNamespace' }, { reason: 'OtherMountNamespace' }],
    [
      'another mount namespace that is left alone',
      { containerName: 'loose', reason: 'OtherMountNamespace' },
      { outcome: 'unchecked' },
    ],
    ['what is now listed', { reason: 'Unlisted' }, { outcome: 'allowed' }],
    ['no policy then', { reason: 'NoPolicy' }, { outcome: 'allowed' }],
    ['a container that is not named', { containerName: 'x' }, { outcome: 'unrestricted' }],
    ['a path that is none', { executablePath: 'ls' }, { outcome: 'violation' }],
  ])('judges %s as the kernel would', (_, recorded, decision) => {
    expect(simulate(spec(), [exec(recorded)]).execs[0]?.decision).toMatchObject(decision);
  });

  it('says what the mode would do', () => {
    const recorded = [exec({ executablePath: '/x' })];
    expect(simulate(spec(), recorded).execs[0]?.decision).toMatchObject({ action: 'protect' });
    expect(simulate(spec({ mode: 'monitor' }), recorded).execs[0]?.decision).toMatchObject({
      action: 'monitor',
    });
  });
});

describe('recorded execs', () => {
  it('come from violations with what decided them', () => {
    const violation = { containerName: 'app', executablePath: '/x', occurrences: 4, podName: 'p' };
    expect(execsOfViolations([violation as ViolationRecord])).toEqual([
      { containerName: 'app', executablePath: '/x', occurrences: 4 },
    ]);
  });

  it('come from a proposal with the counts that are known', () => {
    const parsed = parseWorkloadPolicyProposal({
      apiVersion: API_VERSION,
      kind: 'WorkloadPolicyProposal',
      metadata: { name: 'deploy-web' },
      spec: { rulesByContainer: { app: { executables: { allowed: ['/a', '/b'] } } } },
      status: {
        observations: [
          {
            containerName: 'app',
            executablePath: '/a',
            count: 9,
            firstSeen: '2026-01-01T00:00:00Z',
            lastSeen: '2026-01-02T00:00:00Z',
          },
        ],
      },
    });
    expect(parsed.ok && execsOfProposal(parsed.value)).toEqual([
      { containerName: 'app', executablePath: '/a', occurrences: 9 },
      { containerName: 'app', executablePath: '/b', occurrences: 1 },
    ]);
  });
});
