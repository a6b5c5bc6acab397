import { startFakeApiServer, type FakeApiServer } from '@runtime-enforcer/kube/fake-api-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fakeContainer, fakeReporting } from '../node/fake-kernel.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import type { NodeViolation } from '../violations/node-violation.ts';
import { createPodNotices, type PodNotices } from './pod-notices.ts';

const UID = '0c7f4e3e-7c0f-4d38-9a52-5b4a5a1d2c3b';

interface WrittenEvent {
  readonly involvedObject: Readonly<Record<string, unknown>>;
  readonly reason: string;
  readonly message: string;
}

let server: FakeApiServer;
let events: WrittenEvent[];
let notices: PodNotices;
beforeEach(async () => {
  events = [];
  server = await startFakeApiServer((request) => {
    events.push(JSON.parse(request.body) as WrittenEvent);
    request.reply(201, {});
  });
  notices = createPodNotices({
    ...{ client: server.client, nodeName: 'n1', log: fakeReporting().log },
    podUid: (containerId) => (containerId === 'c1' ? UID : undefined),
  });
});
afterEach(async () => {
  await notices.stop();
  await server.stop();
});

function pod(change: Partial<NriPodSandbox> = {}): NriPodSandbox {
  return {
    ...{ id: 'p1', name: 'web-1', uid: UID, namespace: 'shop', annotations: new Map(), labels: new Map() },
    ...{ cgroupParent: '', runtimeHandler: '', pid: 1 },
    ...change,
  };
}
const container: NriContainer = {
  ...{ id: 'c1', podSandboxId: 'p1', name: 'main', labels: new Map(), annotations: new Map() },
  ...{ state: 'created', args: [], cgroupsPath: '/c1', pid: 2, image: '' },
};
const violation: NodeViolation = {
  ...{ namespace: 'shop', podName: 'web-1', containerName: 'main', containerId: 'c1', nodeName: 'n1' },
  ...{ policyName: 'web', executablePath: '/bin/id\n', action: 'protect', occurrences: 1 },
  ...{ firstObservedTimestamp: '2026-01-01T00:00:00Z', lastObservedTimestamp: '2026-01-01T00:00:00Z' },
};

it('tells on the pod why a container was refused', async () => {
  notices.refused?.(
    pod(),
    container,
    'pod shop/web-1 has policy web associated, but the policy does not exist',
  );
  await notices.flush();
  expect(events).toHaveLength(1);
  expect(events[0]?.involvedObject).toEqual({
    ...{ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web-1', uid: UID },
  });
  expect(events[0]).toMatchObject({ reason: 'ContainerRefused' });
  expect(events[0]?.message).toContain('the policy does not exist');
});

it('names a static pod without the uid that only its node knows', async () => {
  notices.unenforced?.(pod({ uid: '9f86d081884c7d659a2feaa0c55ad015' }), container, 'it has no cgroup');
  await notices.flush();
  expect(events[0]?.involvedObject).toEqual({
    apiVersion: 'v1',
    kind: 'Pod',
    namespace: 'shop',
    name: 'web-1',
  });
});

it('says nothing about names that no pod can have', async () => {
  notices.refused?.(pod({ name: '../../secrets' }), container, 'x');
  notices.refused?.(pod({ namespace: 'a/b' }), container, 'x');
  await notices.flush();
  expect(events).toEqual([]);
});

it('tells of a container that ran unchecked, and not of one that is only learned', async () => {
  notices.boundLate?.(fakeContainer({ podUid: UID }));
  notices.boundLate?.(fakeContainer({ state: 'learning' }));
  notices.waiting?.(fakeContainer({ state: 'waiting' }), 'the policy does not exist');
  await notices.flush();
  expect(events.map(({ reason }) => reason)).toEqual(['ContainerBoundLate', 'ContainerUnchecked']);
});

it('tells a denial with a path that cannot act on a terminal, and no overflow', async () => {
  notices.violation(violation);
  notices.violation({ ...violation, action: 'monitor', containerId: 'c2' });
  notices.violation({ ...violation, overflow: true, executablePath: '' });
  await notices.flush();
  expect(events.map(({ reason, message }) => [reason, message])).toEqual([
    [
      'ExecutableDenied',
      String.raw`"/bin/id\n" in container main is not allowed by policy web and was denied.`,
    ],
    [
      'ExecutableNotAllowed',
      String.raw`"/bin/id\n" in container main is not allowed by policy web; it was not denied.`,
    ],
  ]);
  expect(events[0]?.involvedObject['uid']).toBe(UID);
  expect(events[1]?.involvedObject['uid']).toBeUndefined();
});

it('bounds what violations can write, for a pod and for all pods of the node, and counts the rest', async () => {
  for (let i = 0; i < 500; i++) notices.violation({ ...violation, executablePath: `/bin/${i}` });
  await notices.flush();
  expect(events).toHaveLength(3);
  for (let i = 0; i < 500; i++) notices.violation({ ...violation, podName: `web-${i}` });
  await notices.flush();
  expect(events.length).toBeGreaterThanOrEqual(6);
  expect(events.length).toBeLessThan(10);
  const { written, suppressed } = notices.counters();
  expect(written + suppressed).toBe(1_000);
});

it('bounds what an agent that comes back writes of the containers that did not wait for it', async () => {
  for (let i = 0; i < 500; i++) {
    notices.boundLate?.(fakeContainer({ podName: `web-${i}`, podUid: UID }));
    notices.waiting?.(fakeContainer({ podName: `db-${i}`, state: 'waiting' }), 'the policy does not exist');
  }
  await notices.flush();
  expect(events.length).toBeGreaterThanOrEqual(8);
  expect(events.length).toBeLessThan(12);
  expect(notices.counters().suppressed).toBe(1_000 - events.length);
});

it('tells why a container was refused whatever violations there are', async () => {
  for (let i = 0; i < 500; i++) notices.violation({ ...violation, podName: `web-${i}` });
  notices.refused?.(pod(), container, 'the policy does not exist');
  await notices.flush();
  expect(events.at(-1)?.reason).toBe('ContainerRefused');
});
