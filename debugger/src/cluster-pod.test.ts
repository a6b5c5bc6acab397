import { expect, it } from 'vitest';
import { clusterPodOf } from './cluster-pod.ts';

const metadata = {
  name: 'web-1',
  namespace: 'shop',
  uid: 'uid-1',
  creationTimestamp: '2026-01-31T12:00:00Z',
};

it('is read with every container that has or had an id', () => {
  const pod = clusterPodOf({
    metadata: { ...metadata, labels: { app: 'web' } },
    spec: { nodeName: 'node-1' },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      initContainerStatuses: [
        {
          name: 'init',
          containerID: 'containerd://i1',
          state: { terminated: { containerID: 'containerd://i1' } },
        },
      ],
      containerStatuses: [
        {
          name: 'app',
          containerID: 'cri-o://a2',
          state: { running: {} },
          lastState: { terminated: { containerID: 'cri-o://a1' } },
        },
        { name: 'late', state: { waiting: {} } },
      ],
      ephemeralContainerStatuses: [{ name: 'debug', containerID: 'containerd://d1', state: { running: {} } }],
    },
  });
  expect(pod).toEqual({
    ...{ id: 'uid-1', name: 'web-1', namespace: 'shop', nodeName: 'node-1', phase: 'Running' },
    labels: new Map([['app', 'web']]),
    containers: [
      { name: 'init', id: 'i1', isRunning: false },
      { name: 'app', id: 'a2', isRunning: true },
      { name: 'app', id: 'a1', isRunning: false },
      { name: 'debug', id: 'd1', isRunning: true },
    ],
    ...{ address: '10.0.0.1', isDeleting: false, createdAt: Date.parse('2026-01-31T12:00:00Z') },
  });
});

it('has the id of its file if it is a static pod, as its runtime has it', () => {
  const annotations = { 'kubernetes.io/config.mirror': 'hash-1' };
  const pod = clusterPodOf({ metadata: { ...metadata, annotations }, spec: { nodeName: 'node-1' } });
  expect(pod?.id).toBe('hash-1');
});

it('is none where no node has it, and read as far as it goes where its status is odd', () => {
  expect(clusterPodOf({ metadata, spec: {} })).toBeUndefined();
  const status = {
    containerStatuses: [7, { name: 5 }, { name: 'x', containerID: 3, state: 'running' }],
    podIP: 1,
  };
  expect(clusterPodOf({ metadata, spec: { nodeName: 'n' }, status })).toMatchObject({
    containers: [],
    address: undefined,
    phase: '',
  });
});
