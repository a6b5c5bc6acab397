import { expect, it } from 'vitest';
import { createNodeHealth } from './node-health.ts';

it('is alive and not ready while another agent enforces on the node', () => {
  const health = createNodeHealth();
  health.subjects.standby = 'the agent with pid 7 enforces on this node; taking over when it ends';
  expect(health.live()).toEqual([]);
  expect(health.ready()).toEqual([health.subjects.standby]);
});

it('tells everything that is waited for, and latches nothing', () => {
  const health = createNodeHealth();
  const node = { synchronized: false, attached: true };
  let waiting: string | undefined = '3 policies are not loaded yet';
  Object.assign(health.subjects, { node, policies: { waitingFor: () => waiting } });
  expect(health.ready()).toEqual([
    'waiting for NRI synchronization to complete',
    'waiting for WorkloadPolicy synchronization to complete: 3 policies are not loaded yet',
  ]);
  waiting = undefined;
  node.synchronized = true;
  expect(health.ready()).toEqual([]);
  node.synchronized = false;
  expect(health.ready()).toEqual(['waiting for NRI synchronization to complete']);
  node.synchronized = true;
  node.attached = false;
  expect(health.live()).toHaveLength(1);
  expect(health.ready()).toEqual(health.live());
});
