import { POLICY_LABEL, PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { describe, expect, it } from 'vitest';
import { memoryApi } from '../testing/memory-api.ts';
import type { AdmissionRequest, Admit } from './admission-review.ts';
import { ownerReferenceAdmission } from './owner-reference.ts';
import { policyDeletionAdmission } from './policy-deletion.ts';
import { policyLabelAdmission } from './policy-label.ts';
import { promoteLabelAdmission } from './promote-label.ts';

const judge = async (admit: Admit, request: Partial<AdmissionRequest>) =>
  await admit(
    {
      uid: 'r',
      operation: 'CREATE',
      kind: 'WorkloadPolicyProposal',
      namespace: 'shop',
      name: '',
      user: { username: 'ann', uid: '', groups: ['dev'], extra: {} },
      object: undefined,
      oldObject: undefined,
      ...request,
    },
    AbortSignal.timeout(1_000),
  );

describe('owner reference', () => {
  const api = memoryApi();
  const uid = api.put('/apis/apps/v1/namespaces/shop/deployments/web', {}).metadata.uid ?? '';
  api.put('/apis/batch/v1/namespaces/shop/cronjobs/nightly', {});
  const admit = ownerReferenceAdmission(api.client);
  const proposed = async (ownerReferences: unknown, name = 'deploy-web') =>
    await judge(admit, { object: { metadata: { name, ownerReferences } } });
  const complete = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    name: 'web',
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };

  it('is completed from the workload', async () => {
    expect(await proposed([{ kind: 'Deployment', name: 'web', uid: '' }])).toEqual({
      allowed: true,
      patch: [{ op: 'replace', path: '/metadata/ownerReferences/0', value: complete }],
    });
    expect(await proposed([{ kind: 'CronJob', name: 'nightly' }], 'cronjob-nightly')).toMatchObject({
      patch: [{ value: { apiVersion: 'batch/v1', kind: 'CronJob' } }],
    });
  });

  it('is left alone when it is complete and right', async () => {
    expect(await proposed([complete])).toEqual({ allowed: true, patch: [] });
  });

  it.each([
    ['none', undefined, 422, 'exactly one owner'],
    ['two', [{ kind: 'Deployment', name: 'web' }, {}], 422, 'exactly one owner'],
    ['no object', ['web'], 422, 'exactly one owner'],
    ['no kind', [{ name: 'web' }], 422, 'kind is missing'],
    ['no name', [{ kind: 'Deployment' }], 422, 'name is missing'],
    ['a path for a name', [{ kind: 'Deployment', name: '..' }], 422, 'name is missing'],
    ['another kind', [{ kind: 'Pod', name: 'web' }], 422, 'kind "Pod" is not supported'],
    ['a hostile kind', [{ kind: 'constructor', name: 'web' }], 422, 'is not supported'],
    ['a stranger', [{ kind: 'Deployment', name: 'db' }], 410, 'Deployment shop/db is not found'],
    ['a forged uid', [{ ...complete, uid: 'forged' }], 422, 'uid is not that of Deployment'],
    ['a forged version', [{ ...complete, apiVersion: 'evil/v1' }], 422, 'apiVersion is not that of'],
  ])('is refused: %s', async (_, references, code, words) => {
    expect(await proposed(references)).toMatchObject({
      allowed: false,
      refusal: { code, message: expect.stringContaining(words) as string },
    });
  });

  it('leaves it to the failure policy when the workload cannot be read', async () => {
    const broken = memoryApi();
    broken.intercept = () => {
      throw new ApiError('GET', 500, {});
    };
    const object = { metadata: { name: 'x', ownerReferences: [{ kind: 'Job', name: 'x' }] } };
    await expect(judge(ownerReferenceAdmission(broken.client), { object })).rejects.toThrow(ApiError);
  });

  it('tells of a proposal that learning would name otherwise', async () => {
    expect(await proposed([complete], 'mine')).toMatchObject({
      allowed: true,
      warnings: [expect.stringContaining('named deploy-web')],
    });
  });
});

describe('promote label', () => {
  function reviewer(allowed: boolean) {
    const api = memoryApi();
    const asked: unknown[] = [];
    const client = {
      ...api.client,
      request: ({ body }: { readonly body?: unknown }) => {
        asked.push(body);
        return Promise.resolve({ status: { allowed } });
      },
    };
    return { admit: promoteLabelAdmission(client), asked };
  }
  const proposal = (label?: string, path = '/bin/ls') => ({
    metadata: { name: 'deploy-web', labels: label === undefined ? {} : { [PROMOTE_LABEL]: label } },
    spec: { rulesByContainer: { app: { executables: { allowed: [path] } } } },
  });

  it.each(['', 'Monitor', 'protect ', 'constructor', '\u202eprotect'])(
    'refuses the value %j',
    async (label) => {
      expect(await judge(reviewer(true).admit, { object: proposal(label) })).toMatchObject({
        allowed: false,
        refusal: { code: 422, message: expect.stringContaining('must be "monitor" or "protect"') as string },
      });
    },
  );

  it.each([
    ['a new one with the label', proposal('monitor'), undefined, true],
    ['the label set', proposal('monitor'), proposal(), true],
    ['the label changed', proposal('protect'), proposal('monitor'), true],
    ['rules changed under the label', proposal('monitor', '/bin/sh'), proposal('monitor'), true],
    ['nothing changed that counts', proposal('monitor'), proposal('monitor'), false],
    ['the label taken away', proposal(), proposal('monitor'), false],
    ['no label', proposal(undefined, '/bin/sh'), proposal(), false],
  ])('takes the right to create policies: %s', async (_, object, oldObject, takesRight) => {
    for (const isPermitted of [true, false]) {
      const { admit, asked } = reviewer(isPermitted);
      const operation = oldObject === undefined ? 'CREATE' : 'UPDATE';
      const verdict = await judge(admit, { operation, object, oldObject });
      expect(verdict.allowed).toBe(isPermitted || !takesRight);
      expect(asked).toHaveLength(takesRight ? 1 : 0);
      if (verdict.allowed) continue;
      expect(verdict.refusal).toMatchObject({
        code: 403,
        message: expect.stringContaining('user "ann" cannot promote') as string,
      });
      expect(asked[0]).toMatchObject({
        spec: {
          user: 'ann',
          groups: ['dev'],
          resourceAttributes: {
            verb: 'create',
            group: 'runtimeenforcer.kubewarden.io',
            resource: 'workloadpolicies',
            namespace: 'shop',
          },
        },
      });
    }
  });
});

describe('deletion of a policy', () => {
  const path = (name: string) => `/api/v1/namespaces/shop/pods/${name}`;
  function world(pods: number, namespace: object = {}) {
    const api = memoryApi();
    api.put('/api/v1/namespaces/shop', { metadata: namespace });
    for (let index = 1; index <= pods; index++) {
      api.put(path(`web-${index}`), { metadata: { labels: { [POLICY_LABEL]: 'deploy-web' } } });
    }
    api.put(path('other'), { metadata: { labels: { [POLICY_LABEL]: 'deploy-db' } } });
    const verdict = judge(policyDeletionAdmission(api.client), {
      operation: 'DELETE',
      oldObject: { metadata: { name: 'deploy-web' } },
    });
    return { api, verdict };
  }

  it('waits for the pods that use it, and names them', async () => {
    const { verdict } = world(12);
    expect(await verdict).toMatchObject({
      allowed: false,
      refusal: {
        code: 403,
        message:
          'cannot delete WorkloadPolicy "deploy-web" while 12 pod(s) in namespace "shop" still use it: ' +
          'web-1, web-2, web-3, web-4, web-5, web-6, web-7, web-8, web-9, web-10 (and 2 more)',
      },
    });
  });

  it('proceeds without pods, and in a namespace that is being deleted', async () => {
    expect(await world(0).verdict).toMatchObject({ allowed: true });
    expect(await world(3, { deletionTimestamp: '2026-01-01T00:00:00Z' }).verdict).toMatchObject({
      allowed: true,
    });
  });
});

describe('policy label', () => {
  const admit = (unknownPolicy: 'warn' | 'deny' = 'warn') =>
    policyLabelAdmission({
      unknownPolicy,
      policyExists: (namespace, name) => Promise.resolve(`${namespace}/${name}` === 'shop/deploy-web'),
    });
  const labels = (policy: string) => ({ metadata: { name: 'web-1', labels: { [POLICY_LABEL]: policy } } });

  it.each([
    ['the policy exists', labels('deploy-web')],
    ['there is no label', { metadata: { name: 'web-1' } }],
    ['it is empty on purpose', labels('')],
    [
      'it is the image of a static pod',
      { metadata: { ...labels('x').metadata, annotations: { 'kubernetes.io/config.mirror': 'x' } } },
    ],
  ])('says nothing to a pod when %s', async (_, object) => {
    expect(await judge(admit('deny'), { kind: 'Pod', object })).toEqual({ allowed: true });
  });

  it('warns of a pod that names an unknown policy, or refuses it', async () => {
    expect(await judge(admit(), { kind: 'Pod', object: labels('nope') })).toEqual({
      allowed: true,
      warnings: [
        'WorkloadPolicy "nope" does not exist in namespace "shop"; the pod\'s containers will not start until it is created',
      ],
      auditAnnotations: { 'unknown-policy': 'shop/nope' },
    });
    expect(await judge(admit('deny'), { kind: 'Pod', object: labels('No_Name') })).toMatchObject({
      allowed: false,
      refusal: { code: 403 },
      auditAnnotations: { 'unknown-policy': 'shop/No_Name' },
    });
  });

  it.each(['Deployment', 'DaemonSet', 'StatefulSet', 'ReplicaSet', 'Job', 'CronJob'])(
    'warns at a %s, and never refuses it',
    async (kind) => {
      const template = (policy: string) =>
        kind === 'CronJob'
          ? { jobTemplate: { spec: { template: labels(policy) } } }
          : { template: labels(policy) };
      const of = async (object: object) =>
        await judge(admit('deny'), { kind, object: { metadata: { name: 'web' }, ...object } });
      expect(await of({ spec: template('deploy-web') })).toEqual({ allowed: true });
      expect(await of({ spec: null })).toEqual({ allowed: true });
      expect(await of({ spec: template('nope') })).toMatchObject({
        allowed: true,
        warnings: [expect.stringContaining(`containers of this ${kind} will not start`)],
      });
      const misplaced = await of({ ...labels('deploy-web'), spec: {} });
      expect(misplaced).toMatchObject({
        allowed: true,
        warnings: [expect.stringContaining(`binds nothing on a ${kind}`)],
      });
      expect(misplaced.warnings?.[0]).toContain(
        kind === 'CronJob' ? 'spec.jobTemplate.spec.template.metadata' : 'spec.template.metadata',
      );
    },
  );
});
