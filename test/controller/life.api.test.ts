import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { leaseRecordOf } from '@runtime-enforcer/kube/lease-record';
import { LEASES } from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { createAll } from './chart-objects.ts';
import {
  CONTROLLER_ACCOUNT,
  CONTROLLER_NAMESPACE,
  type ControllerPlace,
  controllerPlace,
  type ControllerProcess,
  readMetrics,
} from './controller-process.ts';
import { objectOf, propose } from './proposals.ts';

const NAMESPACE = 'shop';
const LEASE = '4e873589.rancher.io';
const OTHER_ACCOUNT = 'other-controller';
const ELECTION = [
  '--leader-elect',
  '--leader-elect-lease-duration=4s',
  '--leader-elect-renew-deadline=3s',
  '--leader-elect-retry-period=500ms',
];
const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata', verbs: ['create', 'update', 'patch', 'delete'] }, { level: 'None' }],
};

let plane: ControlPlane;
let place: ControllerPlace;
let auditDirectory = '';
beforeAll(async () => {
  auditDirectory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-audit-'));
  await writeFile(join(auditDirectory, 'policy.yaml'), JSON.stringify(AUDIT_POLICY));
  plane = await startControlPlane({
    apiServerArguments: [
      `--audit-policy-file=${join(auditDirectory, 'policy.yaml')}`,
      `--audit-log-path=${join(auditDirectory, 'audit.log')}`,
    ],
  });
  await installCustomResources(plane.admin.client);
  await plane.serviceAccount(NAMESPACE, 'default');
  place = await controllerPlace(plane);
  await createAll(plane.admin.client, rightsOfOther());
});
afterAll(async () => {
  await place.stop();
  await plane.stop();
  await rm(auditDirectory, { recursive: true, force: true });
});

/** The same rights under another name, so that the audit log tells two controllers apart. */
function rightsOfOther(): KubeObject[] {
  const subjects = [{ kind: 'ServiceAccount', name: OTHER_ACCOUNT, namespace: CONTROLLER_NAMESPACE }];
  const apiGroup = 'rbac.authorization.k8s.io';
  const apiVersion = `${apiGroup}/v1`;
  return [
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: { name: OTHER_ACCOUNT },
      roleRef: { apiGroup, kind: 'ClusterRole', name: CONTROLLER_ACCOUNT },
      subjects,
    },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata: { name: OTHER_ACCOUNT, namespace: CONTROLLER_NAMESPACE },
      roleRef: { apiGroup, kind: 'Role', name: 'runtime-enforcer-leader-election-role' },
      subjects,
    },
  ];
}

async function lease() {
  const object = await objectOf(plane.admin.client, LEASES, CONTROLLER_NAMESPACE, LEASE);
  return object === undefined ? undefined : leaseRecordOf(object);
}

const ledBy = async (pod: string): Promise<true> =>
  await eventually(
    `${pod} leads`,
    async () => ((await lease())?.holder.startsWith(`${pod}_`) === true ? true : undefined),
    30_000,
  );

const isPromoted = async (name: string): Promise<true> =>
  await eventually(
    `${name} is promoted`,
    async () =>
      (await objectOf(plane.admin.client, WORKLOAD_POLICIES, NAMESPACE, name)) === undefined
        ? undefined
        : true,
    30_000,
  );

interface AuditEvent {
  readonly user: { readonly username: string };
  readonly verb: string;
  readonly requestURI: string;
  readonly requestReceivedTimestamp: string;
  readonly responseStatus: { readonly code: number };
}

async function auditEvents(): Promise<AuditEvent[]> {
  const text = await readFile(join(auditDirectory, 'audit.log'), 'utf8');
  // The last line may be under way.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEvent);
}

describe('two controllers', () => {
  // The next ones must not wait for a lease of those before.
  afterEach(async () => await place.stopAll());

  it(
    'a leader that is stopped for a while writes nothing when it goes on',
    { timeout: 120_000 },
    async () => {
      const { client } = plane.admin;
      const first = await place.start({ args: ELECTION });
      await ledBy('controller-0');
      const second = await place.start({ account: OTHER_ACCOUNT, args: ELECTION });
      await second.ready();
      // Work for the first at the very moment at which it goes on: it has seen nothing of it yet.
      await propose(client, NAMESPACE, 'deploy-before', 'monitor');
      await isPromoted('deploy-before');
      first.pause();
      for (let index = 0; index < 20; index++) await propose(client, NAMESPACE, `deploy-${index}`, 'monitor');
      await ledBy('controller-1');
      const takenAt = new Date();
      for (let index = 0; index < 20; index++) await isPromoted(`deploy-${index}`);
      for (let index = 20; index < 40; index++) {
        await propose(client, NAMESPACE, `deploy-${index}`, 'monitor');
      }
      first.resume();
      for (let index = 20; index < 40; index++) await isPromoted(`deploy-${index}`);
      await sleep(2_000);
      const later = (await auditEvents()).filter(
        ({ requestReceivedTimestamp }) => new Date(requestReceivedTimestamp) > takenAt,
      );
      // Who asks for the lease in vain has written nothing.
      const writesOf = (account: string) =>
        later.filter(
          ({ user, responseStatus: { code } }) => user.username.endsWith(`:${account}`) && code < 300,
        );
      expect(writesOf(OTHER_ACCOUNT).length).toBeGreaterThan(40);
      expect(writesOf(CONTROLLER_ACCOUNT).map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([]);
      await first.stop();
      await second.stop();
    },
  );

  it(
    'give the lease back when they stop in order, and it is taken when they are killed',
    {
      timeout: 120_000,
    },
    async () => {
      const { client } = plane.admin;
      const first = await place.start({ args: ELECTION });
      await ledBy('controller-2');
      const second = await place.start({ args: ELECTION });
      await second.ready();
      const start = performance.now();
      await first.stop('SIGTERM');
      await ledBy('controller-3');
      // Not even one lease duration was waited for.
      expect(performance.now() - start).toBeLessThan(4_000);
      const third = await place.start({ args: ELECTION });
      await third.ready();
      await second.stop('SIGKILL');
      await propose(client, NAMESPACE, 'deploy-after-kill', 'protect');
      await ledBy('controller-4');
      await isPromoted('deploy-after-kill');
      await third.stop();
      expect((await lease())?.holder).toBe('');
    },
  );
});

describe('metrics', () => {
  let controller: ControllerProcess;
  beforeAll(async () => {
    controller = await place.start();
    await controller.ready();
  });
  afterAll(async () => await controller.stop());

  const scrape = async (token?: string) => await readMetrics(plane, controller, token);

  it('are for those who may read them', async () => {
    const reader = await plane.serviceAccount('monitoring', 'prometheus');
    const token = await readFile(reader.tokenFile, 'utf8');
    expect((await scrape()).status).toBe(401);
    expect((await scrape('forged.token.x')).status).toBe(401);
    expect((await scrape(token)).status).toBe(403);
    await createAll(plane.admin.client, [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'prometheus' },
        roleRef: {
          apiGroup: 'rbac.authorization.k8s.io',
          kind: 'ClusterRole',
          name: 'runtime-enforcer-metrics-reader',
        },
        subjects: [{ kind: 'ServiceAccount', name: 'prometheus', namespace: 'monitoring' }],
      },
    ]);
    const text = await eventually('it may read', async () => {
      const answer = await scrape(token);
      return answer.status === 200 ? answer.text : undefined;
    });
    expect(text).toContain('runtime_enforcer_controller_leader 1');
    expect(text).toMatch(/^runtime_enforcer_controller_build_info\{version="\d/m);
  });
});
