import { setTimeout as sleep } from 'node:timers/promises';
import { EVIDENCE_ANNOTATION, PROMOTE_LABEL, PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import type { ApiRequest } from '@runtime-enforcer/kube/api-client';
import { ApiError, ConnectionError } from '@runtime-enforcer/kube/api-error';
import { afterEach, describe, expect, it } from 'vitest';
import { leaderClient } from '../leadership/leader-client.ts';
import { eventually } from '../testing/eventually.ts';
import { memoryApi } from '../testing/memory-api.ts';
import { keptEvents, SILENT_LOG } from '../testing/silent.ts';
import { createPromotion, type Promotion } from './promotion-loop.ts';
import { conditionsOf } from './proposal-summary.ts';

const ROOT = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/shop';
const PROPOSALS = `${ROOT}/workloadpolicyproposals`;
const POLICIES = `${ROOT}/workloadpolicies`;
const RULES = { app: { executables: { allowed: ['/bin/ls', String.raw`/opt/\xff`] } }, init: {} };
const FAST = {
  timings: { backOff: { baseMs: 1, maxMs: 5, jitter: 0 } },
  backOff: { baseMs: 1, maxMs: 5, jitter: 0 },
};

const running: Promotion[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(async (promotion) => await promotion.stop()));
});

function world() {
  const api = memoryApi();
  const events = keptEvents();
  const errors: unknown[] = [];
  const log = {
    ...SILENT_LOG,
    warn(fields: object) {
      if ('err' in fields) errors.push(fields.err);
    },
  };
  return {
    api,
    events,
    /** What a step threw. */
    errors,
    start: (client = api.client) => {
      const promotion = createPromotion({ client, events: events.recorder, log, ...FAST });
      running.push(promotion);
      promotion.start();
      return promotion;
    },
    propose: (name: string, promote?: string, fields: object = {}) =>
      api.put(`${PROPOSALS}/${name}`, {
        apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
        kind: 'WorkloadPolicyProposal',
        metadata: {
          name,
          generation: 1,
          annotations: { theirs: 'x' },
          labels: { team: 'a', ...(promote !== undefined && { [PROMOTE_LABEL]: promote }) },
        },
        spec: { rulesByContainer: RULES },
        ...fields,
      }),
    policy: (name: string, labels: Record<string, string> = {}) =>
      api.put(`${POLICIES}/${name}`, { metadata: { name, labels }, spec: { mode: 'monitor' } }),
    failure: (name: string) => conditionsOf(api.get(`${PROPOSALS}/${name}`) ?? { metadata: { name } })[0],
  };
}

describe('promotion', () => {
  it('makes the policy that the label asks for, and removes the proposal', async () => {
    const { api, events, start, propose } = world();
    propose('deploy-web', 'protect');
    propose('deploy-other');
    start();
    await eventually('the proposal is gone', () => api.get(`${PROPOSALS}/deploy-web`) === undefined);
    const policy = api.get(`${POLICIES}/deploy-web`);
    expect(policy).toMatchObject({
      metadata: { labels: { [PROMOTED_FROM_LABEL]: 'deploy-web' } },
      spec: {
        mode: 'protect',
        rulesByContainer: { app: { executables: { allowed: ['/bin/ls', String.raw`/opt/\xff`] } } },
      },
    });
    expect(Object.keys(policy?.metadata.annotations ?? {})).toEqual([EVIDENCE_ANNOTATION]);
    expect(policy?.metadata.labels).not.toHaveProperty('team');
    await eventually('it is told', () => events.notes.length === 1);
    expect(events.notes[0]).toMatchObject({
      type: 'Normal',
      reason: 'Promoted',
      subject: { kind: 'WorkloadPolicy', name: 'deploy-web', uid: policy?.metadata.uid },
    });
    expect(api.list(PROPOSALS).map(({ metadata }) => metadata.name)).toEqual(['deploy-other']);
  });

  it('sees a label that is set later, and a proposal that learning makes again', async () => {
    const { api, errors, start, propose } = world();
    propose('deploy-web');
    await start().synced;
    propose('deploy-web', 'monitor');
    await eventually('promoted', () => api.list(POLICIES).length === 1 && api.list(PROPOSALS).length === 0);
    propose('deploy-web');
    await eventually('the leftover is gone', () => api.list(PROPOSALS).length === 0);
    expect(api.list(POLICIES)).toHaveLength(1);
    expect(errors).toEqual([]);
  });

  it('tells who asks for the promotion of a leftover', async () => {
    const { api, events, errors, start, propose, policy } = world();
    policy('mine', { [PROMOTED_FROM_LABEL]: 'deploy-web' });
    propose('deploy-web', 'protect');
    start();
    await eventually('it is told', () => events.notes.length === 1);
    expect(api.list(PROPOSALS)).toEqual([]);
    expect(api.list(POLICIES)).toHaveLength(1);
    expect(events.notes[0]).toMatchObject({
      reason: 'AlreadyPromoted',
      message: expect.stringContaining('the policy mine was made') as string,
    });
    expect(errors).toEqual([]);
  });

  it('keeps a proposal whose policy is gone, although it may not have heard of that yet', async () => {
    const { api, start, propose, policy } = world();
    policy('deploy-web', { [PROMOTED_FROM_LABEL]: 'deploy-web' });
    await start().synced;
    // The watch says nothing of it.
    const asked: string[] = [];
    api.intercept = (moment, { method = 'GET', path }) => {
      asked.push(`${method} ${path}`);
      if (moment === 'before' && method === 'GET' && path === `${POLICIES}/deploy-web`) {
        throw new ApiError('GET', 404, { reason: 'NotFound' });
      }
    };
    propose('deploy-web');
    await eventually('it looked', () => asked.includes(`GET ${POLICIES}/deploy-web`));
    await sleep(20);
    expect(api.list(PROPOSALS)).toHaveLength(1);
  });

  it.each([
    ['InvalidMode', 'deploy-web', 'yes', {}],
    ['NameTooLong', `deploy-${'w'.repeat(60)}`, 'monitor', {}],
    ['InvalidProposal', 'deploy-web', 'monitor', { spec: { rulesByContainer: { 'No Name': {} } } }],
  ])('tells %s once, with what to do, and tries no more', async (reason, name, promote, fields) => {
    const { api, events, start, propose, failure } = world();
    propose(name, promote, fields);
    start();
    await eventually('it is told', () => failure(name) !== undefined && events.notes.length > 0);
    await sleep(50);
    expect(failure(name)).toMatchObject({
      type: 'PromotionFailed',
      status: 'True',
      reason,
      observedGeneration: 1,
    });
    expect(events.notes).toEqual([
      expect.objectContaining({ type: 'Warning', reason: 'PromotionFailed' }) as object,
    ]);
    const before = api.requests.length;
    start();
    await sleep(100);
    const writes = api.requests.slice(before).filter((request) => !request.startsWith('GET'));
    expect(writes).toEqual([]);
    expect(api.list(POLICIES)).toEqual([]);
  });

  it('promotes as soon as the policy in its way is gone', async () => {
    const { api, events, start, propose, policy, failure } = world();
    policy('deploy-web');
    propose('deploy-web', 'monitor');
    start();
    await eventually('it is told', () => failure('deploy-web') !== undefined);
    expect(failure('deploy-web')).toMatchObject({ reason: 'PolicyExists' });
    expect(api.get(`${POLICIES}/deploy-web`)?.metadata.labels).toEqual({});
    api.remove(`${POLICIES}/deploy-web`);
    await eventually('promoted', () => api.list(PROPOSALS).length === 0);
    expect(api.get(`${POLICIES}/deploy-web`)?.metadata.labels).toEqual({
      [PROMOTED_FROM_LABEL]: 'deploy-web',
    });
    expect(events.notes.map(({ reason }) => reason)).toEqual(['PromotionFailed', 'Promoted']);
  });

  it('takes the failure back when the label goes, or is put right', async () => {
    const { api, start, propose, failure } = world();
    propose('deploy-web', 'no');
    propose('deploy-db', 'no');
    start();
    await eventually('told', () => failure('deploy-web') !== undefined && failure('deploy-db') !== undefined);
    const status = api.get(`${PROPOSALS}/deploy-web`)?.['status'];
    propose('deploy-web', undefined, { status });
    propose('deploy-db', 'protect', { status });
    await eventually('taken back', () => failure('deploy-web') === undefined);
    await eventually('promoted', () => api.get(`${POLICIES}/deploy-db`) !== undefined);
  });

  it('offers a refused policy again later only, however often the refusal reads differently', async () => {
    const { api, start, propose, failure } = world();
    let refusals = 0;
    api.intercept = (moment, { method, path }) => {
      if (moment === 'before' && method === 'POST' && path === POLICIES) {
        throw new ApiError('POST', 403, { message: `quota, request ${++refusals}` });
      }
    };
    propose('deploy-web', 'monitor');
    start();
    await eventually('told', () => failure('deploy-web') !== undefined);
    await sleep(100);
    expect(refusals).toBe(1);
    expect(failure('deploy-web')).toMatchObject({
      reason: 'PolicyRefused',
      message: expect.stringContaining('quota') as string,
    });
    api.intercept = () => undefined;
    propose('deploy-web', 'protect', { status: api.get(`${PROPOSALS}/deploy-web`)?.['status'] });
    await eventually('a change is tried at once', () => api.list(POLICIES).length === 1);
  });

  it('leaves a namespace that ends alone', async () => {
    const { api, start, propose, failure } = world();
    api.intercept = (_, { method, path }) => {
      if (method === 'POST' && path === POLICIES) {
        const details = { causes: [{ reason: 'NamespaceTerminating' }] };
        throw new ApiError('POST', 403, { message: 'it ends', details });
      }
    };
    propose('deploy-web', 'monitor');
    await start().synced;
    await sleep(50);
    expect(failure('deploy-web')).toBeUndefined();
  });

  it('goes on by itself after an outage', async () => {
    const { api, start, propose } = world();
    propose('deploy-web', 'monitor');
    let failures = 0;
    api.intercept = (moment, { method = 'GET' }) => {
      if (moment === 'before' && method !== 'GET' && ++failures <= 40) {
        throw new ApiError(method, 500, { message: 'etcd is away' });
      }
    };
    start();
    await eventually('promoted', () => api.list(POLICIES).length === 1 && api.list(PROPOSALS).length === 0);
  });

  it('writes nothing when it does not lead', async () => {
    const { api, start, propose } = world();
    propose('deploy-web', 'monitor');
    propose('deploy-db', 'no');
    start(leaderClient(api.client, () => false));
    await sleep(100);
    expect(api.requests.every((request) => request.startsWith('GET'))).toBe(true);
  });
});

describe('a promotion that is interrupted', () => {
  /** Ends the process at its n-th request, before or after that took effect. @returns whether it came so far */
  async function interrupted(n: number, moment: 'before' | 'after'): Promise<boolean> {
    const { api, start, propose, policy } = world();
    const made: string[] = [];
    let requests = 0;
    let isDead = false;
    let isCut = false;
    api.intercept = (at, request: ApiRequest) => {
      const { method = 'GET', path } = request;
      const counts = !isCut && (method !== 'GET' || path.startsWith(PROPOSALS) || path.startsWith(POLICIES));
      if (at === 'after' && method === 'POST' && path === POLICIES) made.push(path);
      if (isDead) throw new ConnectionError(path, new Error('the process has ended'));
      if (!counts || at !== moment || ++requests < n) return;
      isDead = isCut = true;
      throw new ConnectionError(path, new Error('the process ends'));
    };
    propose('deploy-web', 'protect');
    policy('in-the-way');
    propose('in-the-way', 'protect');
    const first = start();
    await eventually('it is cut, or done', () => isCut || api.list(PROPOSALS).length === 1);
    await first.stop();
    isDead = false;
    start();
    await eventually('the next one completes it', () => api.list(PROPOSALS).length === 1);
    expect(made.length).toBe(1);
    expect(api.get(`${POLICIES}/deploy-web`)).toMatchObject({
      metadata: { labels: { [PROMOTED_FROM_LABEL]: 'deploy-web' } },
      spec: { mode: 'protect' },
    });
    expect(api.get(`${POLICIES}/in-the-way`)?.metadata.labels).toEqual({});
    return isCut;
  }

  it.each(['before', 'after'] as const)(
    '%s any of its requests is completed by the next, once',
    async (moment) => {
      let steps = 0;
      while (await interrupted(steps + 1, moment)) steps++;
      // Read, create, delete at the least.
      expect(steps).toBeGreaterThanOrEqual(3);
    },
  );
});
