import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { describe, expect, it } from 'vitest';
import { PolicyNotReadyError } from '../containers/container-binder.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import { createFakeKernel, fakeReporting } from './fake-kernel.ts';
import { createRuntimeHandlers } from './runtime-handlers.ts';

const RUNTIME = { name: 'containerd', version: '2.1.9', requestTimeoutMs: 2_000 };

function pod(policy?: string, more: Partial<NriPodSandbox> = {}): NriPodSandbox {
  return {
    ...{ id: 'p1', name: 'web-1', uid: 'u1', namespace: 'shop', annotations: new Map() },
    labels: new Map(policy === undefined ? [] : [[POLICY_LABEL, policy]]),
    ...{ cgroupParent: '/kubepods', runtimeHandler: '', pid: 1 },
    ...more,
  };
}

function container(more: Partial<NriContainer> = {}): NriContainer {
  return {
    ...{ id: 'c1', podSandboxId: 'p1', name: 'main', state: 'created', labels: new Map() },
    ...{ annotations: new Map(), args: [], cgroupsPath: '/c1', pid: 2, image: 'i' },
    ...more,
  };
}

function handlersOverFake(failOpen = false) {
  const kernel = createFakeKernel();
  const reporting = fakeReporting();
  const events: string[] = [];
  const handlers = createRuntimeHandlers({
    ...{ binder: kernel.binder, failOpen, ...reporting },
    events: {
      onReconciled: () => Promise.resolve(void events.push('reconciled')),
      onBoundLate: ({ containerId }) => void events.push(`late ${containerId}`),
      onRemove: ({ containerId }) =>
        void events.push(`remove ${containerId} ${kernel.binder.container(containerId)?.state ?? 'gone'}`),
    },
  });
  const start = (of: NriPodSandbox, what = container()): Promise<void> =>
    handlers.startContainer(of, what, new AbortController().signal);
  return { kernel, handlers, start, events, ...reporting };
}

describe('a container that starts', () => {
  it('is bound, labelled or not', async () => {
    const { kernel, start } = handlersOverFake();
    await start(pod());
    expect(kernel.binder.container('c1')?.state).toBe('learning');
  });

  it('is refused when its policy is unknown; the message names pod, container, policy and the way out', async () => {
    const { start, counters } = handlersOverFake();
    await expect(start(pod('web'))).rejects.toThrow(
      'container web-1/main was prevented from starting by runtime-enforcer: pod shop/web-1 has policy web associated, ' +
        "but the policy does not exist; NRI_FAILOPEN=true in the agent's environment lets such containers start unenforced",
    );
    expect(counters.value('containers_refused')).toBe(1);
  });

  it.each([
    ['invalid', 'but no policy can have that name'],
    ['failed', 'but the policy could not be loaded: the table is full'],
  ] as const)('is refused when its policy is %s', async (problem, text) => {
    const { kernel, start } = handlersOverFake();
    kernel.bindErrors.set('main', new PolicyNotReadyError('shop/web', problem, 'the table is full'));
    await expect(start(pod('web'))).rejects.toThrow(text);
  });

  it('with a label is refused when it cannot be bound for whatever reason', async () => {
    const { kernel, start } = handlersOverFake();
    kernel.bindErrors.set('main', new Error('cgroup /c1 is not there', { cause: new Error('ENOENT') }));
    await expect(start(pod('web'))).rejects.toThrow('cgroup /c1 is not there: ENOENT');
  });

  it('without a label is never refused', async () => {
    const { kernel, start, counters } = handlersOverFake();
    kernel.bindErrors.set('main', new Error('all slots are taken'));
    await start(pod());
    expect(counters.value('containers_unbindable')).toBe(1);
  });

  it('starts with a warning where the agent fails open, and is bound when the policy comes', async () => {
    const { kernel, start, lines, counters } = handlersOverFake(true);
    await start(pod('web'));
    expect(lines.at(-1)?.level).toBe('warn');
    expect(lines.at(-1)?.message).toContain('nriFailopen=true');
    expect(lines.at(-1)?.fields['reason']).toContain('the policy does not exist');
    expect(counters.value('containers_failed_open')).toBe(1);
    expect(kernel.binder.container('c1')?.state).toBe('waiting');
  });

  it('cannot break out of the message with its names', async () => {
    const { start } = handlersOverFake();
    const hostile = pod('web', { name: 'a\nb\u202e', namespace: '/../x' });
    const error: unknown = await start(hostile, container({ name: 'c'.repeat(500) })).catch(
      (e: unknown) => e,
    );
    expect(error).toBeInstanceOf(Error);
    const { message } = error as Error;
    expect(message).toMatch(/^container "a\\nb\\u\{202e\}"\/"c{80}…" was prevented/);
    expect(message).not.toMatch(/[\n\u202e]/);
  });
});

describe('what the runtime tells after connecting', () => {
  it('is bound and reported; an unknown policy keeps nothing from going on', async () => {
    const { handlers, events, lines, counters } = handlersOverFake();
    const pods = [pod('web'), pod(undefined, { id: 'p2', name: 'db-1' })];
    await handlers.synchronize(pods, [container(), container({ id: 'c2', podSandboxId: 'p2' })], RUNTIME);
    expect(events).toEqual(['late c2', 'reconciled']);
    expect(lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)).toEqual([
      {
        ...{ namespace: 'shop', podName: 'web-1', containerName: 'main' },
        ...{ policy: 'shop/web', problem: 'policy shop/web is not loaded' },
      },
    ]);
    expect(counters.value('containers_bound_late')).toBe(1);
  });
});

describe('a container that is removed', () => {
  it('is told of before it is forgotten, and an unknown one is ignored', async () => {
    const { kernel, handlers, start, events } = handlersOverFake();
    await start(pod());
    await handlers.removeContainer(pod(), container());
    await handlers.removeContainer(pod(), container({ id: 'other' }));
    expect(events).toEqual(['remove c1 learning']);
    expect(kernel.binder.container('c1')).toBeUndefined();
  });
});
