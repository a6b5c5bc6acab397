import type { PolicyFacts } from '@runtime-enforcer/api/node-status';
import { expect, it } from 'vitest';
import type { AgentPod } from './agent-pod.ts';
import { MAX_POLICIES_OF_AGENT, policyReports } from './policy-reports.ts';

const agent = (name: string): AgentPod => ({
  ...{ uid: name, name, nodeName: name, address: '192.0.2.1' },
  ...{ isDeleting: false, createdAt: 0 },
});
const READY: PolicyFacts = { state: 'ready', mode: 'protect', message: '', digest: 'd' };
const ERROR: PolicyFacts = { ...READY, state: 'error' };

it('holds the last that each agent has said of each policy, and tells what is new', () => {
  const reports = policyReports();
  const [one, other] = [agent('one'), agent('other')];
  expect(reports.set(one, 'shop/web', READY)).toBe(true);
  expect(reports.set(one, 'shop/web', READY)).toBe(false);
  expect(reports.set(one, 'shop/web', ERROR)).toBe(true);
  expect(reports.set(other, 'shop/web', READY)).toBe(true);
  expect([...reports.of('shop/web')]).toEqual([
    [one, ERROR],
    [other, READY],
  ]);
  reports.delete(one, 'shop/web');
  reports.delete(one, 'shop/none');
  expect([...reports.of('shop/web')]).toEqual([[other, READY]]);
  expect(reports.of('shop/none').size).toBe(0);
});

it('forgets an agent, or what is not in its listing any more', () => {
  const reports = policyReports();
  const [one, other] = [agent('one'), agent('other')];
  for (const policy of ['a', 'b', 'c']) for (const each of [one, other]) reports.set(each, policy, READY);
  reports.forget(one, new Set(['b']));
  expect(['a', 'b', 'c'].map((policy) => reports.of(policy).size)).toEqual([1, 2, 1]);
  reports.forget(one);
  expect(['a', 'b', 'c'].map((policy) => reports.of(policy).has(one))).toEqual([false, false, false]);
  expect(reports.of('b').has(other)).toBe(true);
});

it('takes so many policies of an agent and no more, and more again when some are gone', () => {
  const reports = policyReports();
  const one = agent('one');
  for (let index = 0; index < MAX_POLICIES_OF_AGENT; index++) reports.set(one, `p-${index}`, READY);
  expect(reports.set(one, 'more', READY)).toBe(false);
  expect(reports.of('more').size).toBe(0);
  expect(reports.set(one, 'p-0', ERROR)).toBe(true);
  expect(reports.set(agent('other'), 'more', READY)).toBe(true);
  reports.delete(one, 'p-1');
  expect(reports.set(one, 'more', READY)).toBe(true);
});
