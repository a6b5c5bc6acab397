import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { describe, expect, it } from 'vitest';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { RunningProgram } from '../containers/running-programs.ts';
import type { Occurrence } from '../violations/violation-records.ts';
import { createFakeKernel, fakeContainer, fakeReporting } from './fake-kernel.ts';
import { createLateContainers } from './late-containers.ts';

const POLICY: WorkloadPolicy = {
  metadata: {
    name: 'web',
    namespace: 'shop',
    labels: new Map(),
    annotations: new Map(),
    ownerReferences: [],
  },
  spec: {
    ...{ mode: 'protect', unlistedContainers: 'allow', binding: { autoBind: false } },
    rulesByContainer: new Map([
      ['main', { executables: { allowed: ['/bin/server' as ExecutablePath], otherMountNamespaces: 'deny' } }],
    ]),
  },
};

function program(pid: number, path: string, more: Partial<RunningProgram> = {}): RunningProgram {
  return { pid, path: new TextEncoder().encode(path), kind: 'file', otherMountNamespace: false, ...more };
}

function lateOverFake() {
  const kernel = createFakeKernel();
  const reporting = fakeReporting();
  const found: (readonly Occurrence[])[] = [];
  const learned: [BoundContainer, readonly RunningProgram[]][] = [];
  const failed: string[] = [];
  const late = createLateContainers({
    ...{ binder: kernel.binder, ...reporting, pathBytesMax: 4095 },
    policy: (name) => (name === 'shop/web' ? POLICY : undefined),
    journal: { found: (_container, occurrences) => void found.push(occurrences) },
    learner: { running: (...args) => void learned.push(args) },
    failures: (place) => void failed.push(place),
  });
  return { kernel, late, found, learned, failed, ...reporting };
}

describe('containers bound after their start', () => {
  it('are reported with what they run that is not listed', async () => {
    const { kernel, late, found, lines, counters } = lateOverFake();
    kernel.programs.set('c1', [
      program(1, '/bin/server'),
      program(2, '/usr/bin/sleep'),
      program(3, '/bin/server', { kind: 'deleted' }),
      program(4, '/bin/server', { otherMountNamespace: true }),
    ]);
    late.look(fakeContainer({ policy: 'shop/web' }));
    await late.settled();
    expect(
      found[0]?.map(({ executablePath, reason, action, origin }) => [executablePath, reason, action, origin]),
    ).toEqual([
      ['/usr/bin/sleep', 'Unlisted', 'monitor', 'snapshot'],
      ['/bin/server (deleted)', 'Unlinked', 'monitor', 'snapshot'],
      ['/bin/server', 'OtherMountNamespace', 'monitor', 'snapshot'],
    ]);
    expect(lines[0]?.message).toBe('bound a container that started without us');
    expect(lines[0]?.fields).toMatchObject({ podName: 'web-1', unlistedCount: 3 });
    expect(counters.value('running_unlisted')).toBe(3);
  });

  it('are learned where they have no policy', async () => {
    const { kernel, late, found, learned } = lateOverFake();
    kernel.programs.set('c1', [program(1, '/bin/server')]);
    late.look(fakeContainer({ state: 'learning' }));
    await late.settled();
    expect(learned.map(([{ containerId }, programs]) => [containerId, programs.length])).toEqual([['c1', 1]]);
    expect(found).toEqual([]);
  });

  it('do not keep others from being looked at when one cannot be', async () => {
    const { kernel, late, learned, failed } = lateOverFake();
    const found = kernel.binder.running.bind(kernel.binder);
    kernel.binder.running = (container) =>
      container.containerId === 'c1' ? Promise.reject(new Error('gone')) : found(container);
    for (let number = 1; number <= 20; number++) {
      late.look(fakeContainer({ state: 'learning', containerId: `c${number}` }));
    }
    late.look(fakeContainer({ state: 'waiting' }));
    await late.settled();
    expect(learned).toHaveLength(19);
    expect(failed).toEqual(['running_programs']);
  });
});
