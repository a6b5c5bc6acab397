import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clusterPod, reportedBinding, reportedContainer, reportedPod } from './comparison-example.ts';
import { compareNode, type ClusterReport } from './node-report.ts';
import { reportJson } from './report-json.ts';
import { reportText } from './report-text.ts';

const TIME = '2026-01-31T12:00:00.000Z';
const clusterReport = (...reports: ClusterReport['reports']): ClusterReport => ({
  ...{ time: TIME, nodes: reports.length, agentCaches: 1, reports },
});
const UNPRINTABLE = /[^\P{Cc}\n]|[\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u;

describe('reportText', () => {
  it('says of each node how it is, and shows all of one where something differs', () => {
    const report = clusterReport(
      compareNode('node-1', [clusterPod()], {
        cache: { pods: [reportedPod()], bindings: [reportedBinding()] },
      }),
      compareNode('node-2', [clusterPod()], { cache: { pods: [reportedPod()], bindings: [] } }),
      compareNode('node-3', [clusterPod()], { reason: 'no route' }),
    );
    expect(reportText(report)).toBe(`== Caches diff with cluster state: ${TIME} ==
=== Nodes in the cluster: 3, agent caches: 1.
=== Node "node-1": caches are aligned
=== Node "node-2": found differences
- pod shop/web-1 (uid-1): container app (c1): the kernel does not hold it, so what it starts is neither checked nor learned
==== Agent cache dump (1 pods)
shop/web-1 (uid-1): Pod/web-1
  container app (c1): enforced by shop/web, cgroup 7, place 3
==== Kernel dump (0 places)
=== Node "node-3": no agent cache available: no route
`);
  });

  it('shows what is odd about a place of the kernel', () => {
    const bindings = [
      reportedBinding({ indexed: false, policyId: 0, mode: 'unknown' }),
      reportedBinding({ cgroupId: 8n, learning: true }),
    ];
    const text = reportText(clusterReport(compareNode('n', [], { cache: { pods: [], bindings } })));
    expect(text).toContain('place 3 for cgroup 7: no policy, not in the index of cgroups\n');
    expect(text).toContain('place 3 for cgroup 8: learning, says to be of cgroup 7\n');
  });

  it('is bounded, and says so', () => {
    const pods = Array.from({ length: 3_000 }, (_, index) => reportedPod({ uid: `u${index}` }));
    const text = reportText(clusterReport(compareNode('n', [], { cache: { pods, bindings: [] } })));
    expect(text.split('\n').length).toBeLessThan(1_000);
    expect(text).toContain('more lines, see -o json');
  });
});

describe('reportJson', () => {
  it('is one line that holds everything', () => {
    const report = clusterReport(
      compareNode('node-2', [clusterPod()], { cache: { pods: [reportedPod()], bindings: [] } }),
    );
    const text = reportJson(report);
    expect(text.indexOf('\n')).toBe(text.length - 1);
    expect(JSON.parse(text)).toMatchObject({
      ...{ time: TIME, nodes: 1, agentCaches: 1, aligned: false },
      reports: [
        {
          ...{ node: 'node-2', state: 'differences' },
          differences: [
            {
              ...{ kind: 'kernel-missing', pod: 'shop/web-1 (uid-1)', container: 'app (c1)' },
              text: expect.stringContaining('the kernel does not hold it') as unknown,
            },
          ],
          cache: { pods: [{ name: 'web-1', labels: { app: 'web' }, containers: [{ cgroupId: '7' }] }] },
        },
      ],
    });
  });
});

it('lets no text of a tenant or an agent act on a terminal', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom('\u001b]52;c;x\u0007', '\u009b31m', '\u202e', 'a\nb\rc', '\u2028'),
  );
  fc.assert(
    fc.property(text, text, text, (one, two, three) => {
      const containers = [reportedContainer({ id: two, name: three, policyName: one })];
      const labels = new Map([[one, two]]);
      const changes = {
        name: one,
        namespace: two,
        workloadName: three,
        workloadKind: one,
        labels,
        containers,
      };
      const other = reportedPod({ uid: three, name: two, containers });
      const report = clusterReport(
        compareNode(one, [clusterPod()], {
          cache: { pods: [reportedPod(changes), other], bindings: [reportedBinding({ cgroupId: 1n })] },
        }),
        compareNode(two, [], { reason: three }),
        compareNode(three, [], { cache: { pods: [], bindings: one } }),
      );
      expect(reportText(report)).not.toMatch(UNPRINTABLE);
      expect(reportJson(report)).not.toMatch(UNPRINTABLE);
      JSON.parse(reportJson(report));
    }),
  );
});
