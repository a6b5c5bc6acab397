import { describe, expect, it } from 'vitest';
import type { Connection } from '../cluster/connection.ts';
import { commandOptions, type CommandContext } from '../command-context.ts';
import { PluginError, UsageError } from '../plugin-error.ts';
import { waitInForce } from './wait-in-force.ts';

const PLACE = { namespace: 'shop', name: 'web' };

/** A policy whose status is one after the other of these, and then stays the last. */
async function waited(
  statuses: readonly object[],
  given: Readonly<Record<string, unknown>> = { wait: true },
) {
  const left = [...statuses];
  const request = async () => {
    const status = left.length > 1 ? left.shift() : left[0];
    return await Promise.resolve({
      ...{ apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1', kind: 'WorkloadPolicy', status },
      ...{ metadata: { ...PLACE, generation: 2 }, spec: { mode: 'protect', rulesByContainer: {} } },
    });
  };
  let output = '';
  const notes: string[] = [];
  const terminal = { write: (text: string) => (output += text), note: (line: string) => notes.push(line) };
  const context = { terminal, signal: new AbortController().signal } as unknown as CommandContext;
  const connection = { client: { request } } as unknown as Connection;
  await waitInForce(context, connection, PLACE, commandOptions(given));
  return { output, notes };
}

const counts = { totalNodes: 3, successfulNodes: 3, failedNodes: 0 };

describe('waitInForce', () => {
  it('does nothing unless it is asked to', async () => {
    expect(await waited([{ observedGeneration: 1, phase: 'Failed' }], {})).toEqual({ output: '', notes: [] });
  });

  it('is over when the status tells of this state of the policy, and says what it waits for', async () => {
    const { output, notes } = await waited([
      { ...counts, observedGeneration: 1, phase: 'Ready' },
      { ...counts, observedGeneration: 2, phase: 'Transitioning', successfulNodes: 1 },
      { ...counts, observedGeneration: 2, phase: 'Ready' },
    ]);
    expect(output).toBe('WorkloadPolicy "web" in namespace "shop" is in force on all 3 nodes.\n');
    expect(notes).toEqual(['Waiting: no node has told of it.', 'Waiting: 1 of 3 nodes have it.']);
  });

  it('fails where a node cannot load it, and names the node', async () => {
    const nodesWithIssues = { 'node-1': { code: 'Failed', message: 'a table is full' } };
    const failed = { ...counts, observedGeneration: 2, phase: 'Failed', failedNodes: 1, nodesWithIssues };
    const failure: unknown = await waited([failed]).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(PluginError);
    expect(String(failure)).toContain('is not in force on 1 node ("node-1")');
    expect((failure as PluginError).remedy).toContain('policy show web -n shop');
  });

  it('fails when its time is over, and refuses one that is none', async () => {
    const old = [{ ...counts, observedGeneration: 1, phase: 'Ready' }];
    await expect(waited(old, { wait: true, timeout: '100ms' })).rejects.toThrow(
      'not in force on all nodes yet',
    );
    await expect(waited(old, { wait: true, timeout: 'long' })).rejects.toThrow(UsageError);
  });
});
