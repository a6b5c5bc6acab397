import { describe, expect, it } from 'vitest';
import { comparePods } from './compare-pods.ts';
import { clusterPod, reportedContainer, reportedPod } from './comparison-example.ts';
import { differenceText } from './difference.ts';

const texts = (...compared: Parameters<typeof comparePods>): string[] =>
  comparePods(...compared).differences.map(differenceText);
const remarks = (...compared: Parameters<typeof comparePods>): string[] =>
  comparePods(...compared).remarks.map(differenceText);
const LABEL = 'runtimeenforcer.kubewarden.io/policy';

describe('comparePods', () => {
  it('finds nothing where both know the same', () => {
    expect(comparePods([clusterPod()], [reportedPod()])).toEqual({ differences: [], remarks: [] });
    expect(comparePods([], [])).toEqual({ differences: [], remarks: [] });
  });

  it('finds pods that only one side knows', () => {
    expect(texts([clusterPod()], [])).toEqual(['pod shop/web-1 (uid-1) is missing from the agent cache']);
    expect(texts([], [reportedPod()])).toEqual([
      'unexpected pod shop/web-1 (uid-1) found in the agent cache',
    ]);
  });

  it('does not expect of an agent what has ended, nor knows better of what is not there yet', () => {
    const ended = clusterPod({
      phase: 'Succeeded',
      containers: [{ id: 'c1', name: 'app', isRunning: false }],
    });
    expect(texts([ended], [])).toEqual([]);
    expect(texts([clusterPod({ containers: ended.containers })], [reportedPod({ containers: [] })])).toEqual(
      [],
    );
    for (const phase of ['Pending', 'Unknown']) {
      expect(texts([clusterPod({ phase })], [])).toEqual([]);
      expect(texts([clusterPod({ phase })], [reportedPod({ name: 'other' })])).toEqual([]);
    }
  });

  it('finds each field of a pod that differs', () => {
    expect(texts([clusterPod()], [reportedPod({ name: 'web-2' })])).toEqual([
      'pod shop/web-1 (uid-1): "name" mismatch: cluster="web-1", agent="web-2"',
    ]);
    expect(texts([clusterPod()], [reportedPod({ namespace: 'other' })])).toEqual([
      'pod shop/web-1 (uid-1): "namespace" mismatch: cluster="shop", agent="other"',
    ]);
    expect(texts([clusterPod()], [reportedPod({ workloadKind: 'Deployment', workloadName: 'web' })])).toEqual(
      ['pod shop/web-1 (uid-1): "workload" mismatch: cluster="Pod/web-1", agent="Deployment/web"'],
    );
    const labels = new Map([
      ['app', 'web'],
      [LABEL, 'other'],
    ]);
    expect(texts([clusterPod()], [reportedPod({ labels })])).toEqual([
      `pod shop/web-1 (uid-1): "label ${LABEL}" mismatch: cluster="web", agent="other"`,
    ]);
  });

  it('finds each way in which containers differ', () => {
    expect(texts([clusterPod()], [reportedPod({ containers: [] })])).toEqual([
      'pod shop/web-1 (uid-1): missing container app (c1) in the agent cache',
    ]);
    expect(
      texts(
        [clusterPod()],
        [reportedPod({ containers: [reportedContainer(), reportedContainer({ id: 'c0' })] })],
      ),
    ).toEqual(['pod shop/web-1 (uid-1): container app (c0) is only in the agent cache']);
    expect(texts([clusterPod()], [reportedPod({ containers: [reportedContainer({ name: 'x' })] })])).toEqual([
      'pod shop/web-1 (uid-1): container app (c1): "container name" mismatch: cluster="app", agent="x"',
    ]);
    expect(
      texts([clusterPod()], [reportedPod({ containers: [reportedContainer({ policyName: '' })] })]),
    ).toEqual([
      'pod shop/web-1 (uid-1): container app (c1): "policy" mismatch: cluster="shop/web", agent=""',
    ]);
  });

  it('knows the container before, also when the agent still has it', () => {
    const pod = clusterPod({
      containers: [
        { id: 'c1', name: 'app', isRunning: true },
        { id: 'c0', name: 'app', isRunning: false },
      ],
    });
    const both = [reportedContainer(), reportedContainer({ id: 'c0' })];
    expect(texts([pod], [reportedPod({ containers: both })])).toEqual([]);
    expect(texts([pod], [reportedPod()])).toEqual([]);
  });

  it('takes for a remark what a runtime cannot know: labels that were changed since', () => {
    const labels = new Map([...clusterPod().labels, ['role', 'leader']]);
    expect(texts([clusterPod({ labels })], [reportedPod()])).toEqual([]);
    expect(remarks([clusterPod({ labels })], [reportedPod()])).toEqual([
      'pod shop/web-1 (uid-1): label "role" was changed after the pod was made: cluster="leader", agent="none"',
    ]);
  });

  it("leaves kubelet's own labels out, and those of the runtime", () => {
    const own = [
      ['io.kubernetes.pod.uid', 'uid-1'],
      ['io.cri-containerd.kind', 'sandbox'],
    ] as const;
    const labels = new Map([...clusterPod().labels, ...own]);
    expect(comparePods([clusterPod()], [reportedPod({ labels })])).toEqual({ differences: [], remarks: [] });
  });

  it('asks for nothing that the agent had no room for', () => {
    const cut = reportedPod({ labels: new Map(), containers: [], omitted: 3 });
    expect(texts([clusterPod()], [cut])).toEqual([]);
    expect(remarks([clusterPod()], [cut])).toEqual([
      'pod shop/web-1 (uid-1): the agent had no room for 3 of its labels and containers',
    ]);
  });

  it('knows that a name which no policy can have binds to none', () => {
    const labels = new Map([[LABEL, 'UPPER']]);
    const container = reportedContainer({ policyName: 'shop/', state: 'waiting' });
    expect(texts([clusterPod({ labels })], [reportedPod({ labels, containers: [container] })])).toEqual([]);
  });
});
