import { fakeStatus, startFakeApiServer, type FakeApiServer } from '@runtime-enforcer/kube/fake-api-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fakeReporting } from '../node/fake-kernel.ts';
import { createOwnDaemonSet, type OwnDaemonSet } from './daemon-set.ts';

const OWNER = { kind: 'DaemonSet', name: 'agent', controller: true };

let owners: readonly object[];
/** Undefined: there is none. */
let daemonSet: { readonly deletionTimestamp?: string } | undefined;
let broken: number | undefined;
let tell: ((type: string, object: unknown) => void) | undefined;
let server: FakeApiServer;
let own: OwnDaemonSet;

const object = () => ({
  metadata: { name: 'agent', namespace: 'system', uid: 'u', resourceVersion: '7', ...daemonSet },
});

beforeEach(async () => {
  [owners, daemonSet, broken, tell] = [[OWNER], {}, undefined, undefined];
  server = await startFakeApiServer(({ url, reply, watch }) => {
    if (broken !== undefined) reply(broken, fakeStatus(broken, 'Broken'));
    else if (url.pathname.endsWith('/pods/agent-x')) {
      reply(200, { metadata: { name: 'agent-x', namespace: 'system', ownerReferences: owners } });
    } else if (url.pathname.endsWith('/daemonsets/agent')) {
      if (daemonSet === undefined) reply(404, fakeStatus(404, 'NotFound'));
      else reply(200, object());
    } else if (url.searchParams.get('sendInitialEvents') !== null) reply(400, fakeStatus(400, 'BadRequest'));
    else if (url.searchParams.get('watch') !== null) tell = watch();
    else reply(200, { metadata: { resourceVersion: '8' }, items: [object()] });
  });
  own = createOwnDaemonSet({
    ...{ client: server.client, ownPod: { name: 'agent-x', namespace: 'system' } },
    ...{ log: fakeReporting().log, failures: () => undefined },
  });
});
afterEach(async () => {
  await own.stop();
  await server.stop();
});

const state = () => own.state(AbortSignal.timeout(1_000));
const followed = () => expect.poll(() => tell).toBeDefined();

it('is there while it is there, so that a rollout or a restart releases nothing', async () => {
  own.start();
  await followed();
  expect(await state()).toBe('present');
});

it('is deleted when it is going, or gone', async () => {
  own.start();
  await followed();
  daemonSet = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  expect(await state()).toBe('deleted');
  daemonSet = undefined;
  expect(await state()).toBe('deleted');
  daemonSet = {};
  expect(await state()).toBe('present');
});

it('is deleted when that was heard before the rights to ask went away', async () => {
  own.start();
  await followed();
  tell?.('DELETED', object());
  await expect
    .poll(async () => {
      broken = 403;
      return await state();
    })
    .toBe('deleted');
});

it('is unknown when the API server does not answer, and nothing was heard', async () => {
  own.start();
  await followed();
  broken = 503;
  expect(await state()).toBe('unknown');
  await server.stop();
  expect(await own.state(AbortSignal.timeout(100))).toBe('unknown');
});

it('is unknown before our own pod could be read', async () => {
  broken = 403;
  own.start();
  expect(await state()).toBe('unknown');
});

it.each([
  [[]],
  [[{ kind: 'ReplicaSet', name: 'agent', controller: true }]],
  [[{ ...OWNER, controller: false }]],
])('is of no matter to a pod that none made: %j', async (references) => {
  owners = references;
  own.start();
  await expect.poll(state).toBe('present');
});
