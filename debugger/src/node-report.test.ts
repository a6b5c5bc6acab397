import { describe, expect, it } from 'vitest';
import { clusterPod, reportedBinding, reportedPod } from './comparison-example.ts';
import {
  type ClusterReport,
  compareNode,
  isAligned,
  type NodeReport,
  persistentReport,
} from './node-report.ts';

const CACHE = { pods: [reportedPod()], bindings: [reportedBinding()] };
const report = (...reports: NodeReport[]): ClusterReport => ({ time: '', nodes: 1, agentCaches: 1, reports });
const different = compareNode('node-1', [clusterPod()], { cache: { ...CACHE, bindings: [] } });
const others = compareNode('node-1', [clusterPod()], { cache: { ...CACHE, pods: [] } });
const aligned = compareNode('node-1', [clusterPod()], { cache: CACHE });
const silent = compareNode('node-1', [clusterPod()], { reason: 'no route' });

describe('compareNode', () => {
  it('tells of an aligned node nothing more', () => {
    expect(aligned).toEqual({ node: 'node-1', state: 'aligned', differences: [], remarks: [] });
  });

  it('keeps what the agent said where something differs', () => {
    expect(different).toMatchObject({ state: 'differences', differences: [{ kind: 'kernel-missing' }] });
    expect(different.cache?.pods).toEqual(CACHE.pods);
  });

  it('tells why there is no cache', () => {
    expect(silent).toMatchObject({ state: 'no-agent-cache', reason: 'no route' });
    expect(compareNode('node-1', [clusterPod()], undefined)).toMatchObject({
      state: 'no-agent-cache',
      reason: 'no agent runs on the node',
    });
  });

  it('finds a cache of a node where the cluster has nothing', () => {
    expect(compareNode('node-1', [clusterPod({ phase: 'Pending' })], { cache: CACHE }).state).toBe(
      'unexpected-agent-cache',
    );
  });

  it('does not call a node aligned whose kernel nobody could look into', () => {
    expect(compareNode('node-1', [clusterPod()], { cache: { ...CACHE, bindings: 'too old' } })).toMatchObject(
      {
        state: 'differences',
        differences: [{ kind: 'kernel-untold', agent: 'too old' }],
      },
    );
  });
});

describe('persistentReport', () => {
  it('keeps what both looks found', () => {
    expect(persistentReport(report(different), report(different))).toEqual(report(different));
  });

  it('drops what only the later look found, once a look before it has seen the cache', () => {
    expect(isAligned(persistentReport(report(different), report(others)))).toBe(true);
    expect(isAligned(persistentReport(report(aligned), report(others)))).toBe(true);
  });

  it('keeps everything of a node that was not seen before', () => {
    expect(persistentReport(report(silent), report(different))).toEqual(report(different));
    expect(persistentReport(report(), report(different))).toEqual(report(different));
  });

  it('never calls a node aligned that has no cache', () => {
    expect(persistentReport(report(different), report(silent))).toEqual(report(silent));
    expect(isAligned(report(silent))).toBe(false);
  });
});
