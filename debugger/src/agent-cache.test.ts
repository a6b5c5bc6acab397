import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ReportedBinding, ReportedPod } from '@runtime-enforcer/rpc/reported';
import { readAgentCache } from './agent-cache.ts';
import { reportedBinding, reportedContainer, reportedPod } from './comparison-example.ts';

/** An agent that answers so, and whose calls end when it is closed. */
function agent({
  pods = [reportedPod()],
  bindings = [reportedBinding()],
  waitMs = 0,
}: {
  pods?: Iterable<ReportedPod>;
  bindings?: Iterable<ReportedBinding> | Error;
  waitMs?: number;
} = {}) {
  const closed = new AbortController();
  return {
    signal: closed.signal,
    async *listPods() {
      await sleep(waitMs, undefined, { signal: closed.signal });
      yield* pods;
    },
    async *listBindings() {
      await sleep(0);
      if (bindings instanceof Error) throw bindings;
      yield* bindings;
    },
    close: () => closed.abort(),
  };
}

const LIMITS = { answerMs: 10_000, signal: new AbortController().signal };

describe('readAgentCache', () => {
  it('has all that an agent tells, and closes it', async () => {
    const asked = agent();
    expect(await readAgentCache(asked, LIMITS)).toEqual({
      pods: [reportedPod()],
      bindings: [reportedBinding()],
    });
    expect(asked.signal.aborted).toBe(true);
  });

  it('has a sentence where the agent cannot look into the kernel', async () => {
    const { pods, bindings } = await readAgentCache(agent({ bindings: new Error('unknown method') }), LIMITS);
    expect(pods).toHaveLength(1);
    expect(bindings).toBe('unknown method');
  });

  it('gives up an agent that does not answer in time', async () => {
    await expect(readAgentCache(agent({ waitMs: 60_000 }), { ...LIMITS, answerMs: 20 })).rejects.toThrow(
      'no whole answer within 20 ms',
    );
  });

  it('ends at once when it is told to', async () => {
    const ended = new AbortController();
    const asked = agent({ waitMs: 60_000 });
    const reading = readAgentCache(asked, { ...LIMITS, signal: ended.signal });
    ended.abort();
    await expect(reading).rejects.toThrow('aborted');
    expect(asked.signal.aborted).toBe(true);
  });

  it('gives up an agent that never comes to an end', async () => {
    const pod = reportedPod({ labels: new Map([['x', 'y'.repeat(1_000_000)]]) });
    const endless = {
      *[Symbol.iterator]() {
        for (;;) yield pod;
      },
    };
    await expect(readAgentCache(agent({ pods: endless }), LIMITS)).rejects.toThrow('which no node has');
  });

  it('cuts texts that are longer than any name', async () => {
    const long = 'x'.repeat(100_000);
    const labels = new Map([[long, long]]);
    const containers = [reportedContainer({ name: long, policyName: long })];
    const { pods } = await readAgentCache(
      agent({ pods: [reportedPod({ name: long, labels, containers })] }),
      LIMITS,
    );
    expect(JSON.stringify([pods[0]?.name, ...(pods[0]?.labels ?? [])]).length).toBeLessThan(2_000);
    expect(pods[0]?.containers[0]?.name.length).toBeLessThan(1_000);
  });
});
