import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_EVIDENCE_BYTES, promotionEvidence, type PromotionEvidence } from './promotion-evidence.ts';
import { proposalObject } from './testing/resource-arbitrary.ts';
import { parseWorkloadPolicyProposal, type WorkloadPolicyProposal } from './workload-policy-proposal.ts';

function proposal(allowed: readonly string[], observations: readonly unknown[] = []): WorkloadPolicyProposal {
  const parsed = parseWorkloadPolicyProposal({
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicyProposal',
    metadata: {
      name: 'deploy-web',
      namespace: 'shop',
      uid: 'u1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: { rulesByContainer: { app: { executables: { allowed } } } },
    status: { observations, conditions: [] },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.value;
}

const evidenceOf = (from: WorkloadPolicyProposal) => JSON.parse(promotionEvidence(from)) as PromotionEvidence;

describe('promotionEvidence', () => {
  it('tells what the rules rest on', () => {
    const seen = { containerName: 'app', count: 3, pods: ['web-1'], origins: ['entrypoint'] };
    const from = proposal(
      ['/usr/bin/web', '/usr/bin/curl', '/usr/bin/new'],
      [
        {
          ...seen,
          executablePath: '/usr/bin/web',
          firstSeen: '2026-01-02T00:00:00Z',
          lastSeen: '2026-01-05T00:00:00Z',
          nodes: ['n1', 'n2'],
        },
        {
          ...seen,
          executablePath: '/usr/bin/curl',
          firstSeen: '2026-01-01T10:00:00+02:00',
          lastSeen: '2026-01-03T00:00:00Z',
          nodes: ['n1'],
          origins: ['exec'],
        },
      ],
    );
    expect(evidenceOf(from)).toMatchObject({
      proposalUid: 'u1',
      since: '2026-01-01T00:00:00Z',
      paths: 3,
      observedPaths: 2,
      execs: 6,
      firstSeen: '2026-01-01T10:00:00+02:00',
      lastSeen: '2026-01-05T00:00:00Z',
      origins: { entrypoint: 1, exec: 1 },
      nodes: 2,
      full: false,
      concerns: { interactive: 1, noEvidence: 1, oneNode: 1 },
      warnings: [
        {
          container: 'app',
          path: '/usr/bin/curl',
          concerns: expect.arrayContaining(['interactive']) as string[],
        },
      ],
      moreWarnings: 0,
    });
  });

  it('counts what it has no room for', () => {
    const many = Array.from({ length: 100 }, (_, index) => `/tmp/${'x'.repeat(80)}${index}`);
    const long = `/tmp/${'y'.repeat(300)}`;
    const { warnings, moreWarnings } = evidenceOf(proposal([long, ...many]));
    expect(warnings.length).toBeGreaterThan(5);
    expect(warnings.length + moreWarnings).toBe(101);
    expect(warnings.every(({ path }) => path !== long)).toBe(true);
  });

  it('is bounded whatever the proposal holds', () => {
    fc.assert(
      fc.property(proposalObject, (object) => {
        const parsed = parseWorkloadPolicyProposal(object);
        if (!parsed.ok) return;
        expect(Buffer.byteLength(promotionEvidence(parsed.value))).toBeLessThanOrEqual(MAX_EVIDENCE_BYTES);
      }),
    );
  });
});
