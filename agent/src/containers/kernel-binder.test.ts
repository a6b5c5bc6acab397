import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createGracePeriod } from '../kernel/grace-period.ts';
import { EXAMPLE_FACTS, exampleLog, openExampleMaps } from '../kernel/kernel-maps-example.ts';
import { CONTAINER_LAYOUT } from '../kernel/gen/abi.ts';
import { loadNative } from '../kernel/native.ts';
import { createNodeSettings } from '../kernel/node-settings.ts';
import { examplePolicy, isListed, wordOf } from '../policies/policy-example.ts';
import { createPolicyTable, type PolicyTable } from '../policies/policy-table.ts';
import { cgroupIn, openCgroupTree } from './cgroup-tree.ts';
import { PolicyNotReadyError, type ContainerBinder } from './container-binder.ts';
import { startExampleContainer, type ExampleContainer } from './container-example.ts';
import { createContainerSlots } from './container-slots.ts';
import { containerOf, slotOfNamespace } from './kernel-answer-example.ts';
import { createKernelBinder } from './kernel-binder.ts';
import { PRODUCT, PRODUCT_LABEL, type OwnPlace } from './own-pods.ts';

const native = loadNative();
const tree = await openCgroupTree(native);
const WEB = { 'runtimeenforcer.kubewarden.io/policy': 'web' };

describe('kernel binder', () => {
  let opened: ReturnType<typeof openExampleMaps>;
  let table: PolicyTable;
  let binder: ContainerBinder;
  let started: ExampleContainer[];
  let failures: string[];

  const makeAgent = async (change: { learning?: boolean; own?: Partial<OwnPlace> } = {}) => {
    const { learning = true, own = {} } = change;
    const countFailure = (place: string): void => void failures.push(place);
    const { log } = exampleLog();
    const newTable = await createPolicyTable({ native, maps: opened.maps, log, countFailure });
    const newBinder = createKernelBinder({
      native,
      tree,
      slots: createContainerSlots({
        maps: opened.maps,
        grace: createGracePeriod(native),
        hostMountNamespace: EXAMPLE_FACTS.hostMountNamespace,
        countFailure,
      }),
      settings: createNodeSettings(opened.maps.settings),
      table: newTable,
      learning,
      own: { podUid: undefined, namespace: undefined, ...own },
      log,
      countFailure,
    });
    return { table: newTable, binder: newBinder };
  };
  const start = async (
    ...change: Parameters<typeof startExampleContainer> extends [unknown, ...infer R] ? R : never
  ) => {
    const example = await startExampleContainer(tree, ...change);
    started.push(example);
    return example;
  };
  const inKernel = (example: ExampleContainer) =>
    containerOf(opened.maps, native.cgroupId(example.directory));
  const allows = (example: ExampleContainer, path: string): boolean => {
    const word = wordOf(opened.maps, inKernel(example)?.policy ?? 0);
    return word !== undefined && isListed(opened.maps, word.list, Buffer.from(path));
  };
  const reconcile = (agent: { binder: ContainerBinder }, ...examples: readonly ExampleContainer[]) =>
    agent.binder.reconcile(
      examples.map(({ pod }) => pod),
      examples.map(({ container }) => container),
    );

  beforeEach(async () => {
    started = [];
    failures = [];
    opened = openExampleMaps(native);
    createNodeSettings(opened.maps.settings).reset();
    ({ table, binder } = await makeAgent());
  });
  afterEach(async () => {
    for (const example of started) await example.remove();
    await table.settled();
    await createGracePeriod(native).passed();
    opened.close();
  });

  it('binds a container to its policy by cgroup, namespace and first process', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const example = await start({ labels: WEB });
    const { state, container } = await binder.bind(example.pod, example.container);
    expect(state).toBe('enforced');
    expect(container).toMatchObject({
      policy: 'shop/web',
      listed: true,
      cgroupPath: example.cgroupPath,
      mountNamespace: example.mountNamespace,
      pid: example.pid,
    });
    expect(inKernel(example)).toMatchObject({ mountNamespace: example.mountNamespace, initPid: example.pid });
    expect(slotOfNamespace(opened.maps, example.mountNamespace)).toBe(container.slot);
    expect(allows(example, '/bin/a')).toBe(true);
    expect(createNodeSettings(opened.maps.settings).levels()).toMatchObject({ shallowest: 1 });
    expect(binder.lookup(container.slot, container.generation)).toBe(container);
    expect(binder.container(example.container.id)).toBe(container);
  });

  it('learns a container without a policy, or leaves it alone', async () => {
    const example = await start();
    expect((await binder.bind(example.pod, example.container)).state).toBe('learning');
    expect(inKernel(example)).toMatchObject({ policy: 0, flags: 1 });
    const quiet = await makeAgent({ learning: false });
    const other = await start();
    expect((await quiet.binder.bind(other.pod, other.container)).state).toBe('unbound');
    expect(inKernel(other)).toBeUndefined();
  });

  it('does not look for a container that is left alone', async () => {
    const quiet = await makeAgent({ learning: false });
    const example = await start();
    const nowhere = { ...example.container, cgroupsPath: '/none/such', pid: 4_194_303 };
    expect((await quiet.binder.bind(example.pod, nowhere)).state).toBe('unbound');
  });

  it('never binds the container that the agent runs in', async () => {
    const example = await start({ labels: WEB });
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const home = cgroupIn(readFileSync('/proc/self/cgroup', 'utf8'), tree) ?? '/';
    writeFileSync(`${example.directory}/cgroup.procs`, String(process.pid));
    try {
      await reconcile({ binder }, example);
    } finally {
      writeFileSync(`${tree.root}${home}/cgroup.procs`, String(process.pid));
    }
    await binder.policyChanged('shop/web');
    expect(binder.container(example.container.id)?.state).toBe('unbound');
    expect(inKernel(example)).toBeUndefined();
  });

  it('puts right at a reconcile what the maps say otherwise, and takes out what nobody accounts for', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const example = await start({ labels: WEB });
    const agent = await makeAgent();
    await agent.table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    await agent.binder.bind(example.pod, example.container);
    await reconcile(agent, example);
    const policy = inKernel(example)?.policy;
    const { slot = 0, cgroupId = 0n } = agent.binder.container(example.container.id) ?? {};
    const key = Buffer.alloc(8);
    key.writeBigUInt64LE(cgroupId);
    opened.maps.cgroups.delete(key);
    const number = Buffer.alloc(4);
    number.writeUInt32LE(slot);
    opened.maps.containers.update(number, new Uint8Array(CONTAINER_LAYOUT.size));
    expect(inKernel(example)).toBeUndefined();
    const stray = Buffer.alloc(8);
    stray.writeBigUInt64LE(999_999_999n);
    number.writeUInt32LE(3);
    opened.maps.cgroups.update(stray, number);
    const report = await reconcile(agent, example);
    expect(report.repaired.map(({ state }) => state)).toEqual(['enforced']);
    expect(report.strays).toBe(1);
    expect(inKernel(example)?.policy).toBe(policy);
    expect(await reconcile(agent, example)).toMatchObject({ repaired: [], strays: 0, kept: 1 });
  });

  it('never binds the pod of the agent, whatever its labels say', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const example = await start({ labels: WEB });
    const own = await makeAgent({ own: { podUid: example.pod.uid } });
    await own.table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    expect((await own.binder.bind(example.pod, example.container)).state).toBe('unbound');
    expect(await own.binder.policyChanged('shop/web')).toEqual([]);
    expect(inKernel(example)).toBeUndefined();
  });

  it('field 66: never binds nor learns the other pods of the product, and binds who only claims to be one', async () => {
    const claimed = { ...WEB, [PRODUCT_LABEL]: PRODUCT };
    const [product, tenant] = [await start({ labels: claimed }), await start({ labels: claimed })];
    const own = await makeAgent({ own: { namespace: 'enforcer-system' } });
    await own.table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const pod = { ...product.pod, namespace: 'enforcer-system' };
    expect((await own.binder.bind(pod, product.container)).state).toBe('unbound');
    expect(inKernel(product)).toBeUndefined();
    expect((await own.binder.bind(tenant.pod, tenant.container)).state).toBe('enforced');
    expect(await reconcile(own, { ...product, pod }, tenant)).toMatchObject({ failed: [], waiting: [] });
    expect(inKernel(product)).toBeUndefined();
  });

  it('refuses a process that is not in the cgroup', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const example = await start({ labels: WEB });
    await expect(binder.bind(example.pod, { ...example.container, pid: process.pid })).rejects.toThrow(
      `the container's first process (pid ${process.pid}) is not in its cgroup`,
    );
    await expect(
      binder.bind(example.pod, { ...example.container, cgroupsPath: '/none/such' }),
    ).rejects.toThrow('/none/such');
    expect(inKernel(example)).toBeUndefined();
  });

  it('finds the first process by the cgroup where the runtime does not tell it', async () => {
    const example = await start();
    const { container } = await binder.bind(example.pod, { ...example.container, pid: 0 });
    expect(container).toMatchObject({ pid: example.pid, mountNamespace: example.mountNamespace });
  });

  it('takes a relative cgroup path, which means nothing here, by the process', async () => {
    const example = await start();
    const { container } = await binder.bind(example.pod, { ...example.container, cgroupsPath: 'relative' });
    expect(container.cgroupPath).toBe(example.cgroupPath);
  });

  it('field 34: binds a static pod by the cgroup that the runtime names, which has the hash of its file and not its uid', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const configHash = '7c0f6ba1b5e0d4d0e3a8a1f2c3d4e5f6';
    const example = await start({ labels: WEB, nested: `pod${configHash}` });
    const annotations = new Map([['kubernetes.io/config.hash', configHash]]);
    const pod = { ...example.pod, uid: '9d2c1c1e-0000-4f43-9a53-0c1b2f7a9d10', annotations };
    const cgroupsPath = `${example.cgroupPath}/pod${configHash}`;
    const { container } = await binder.bind(pod, { ...example.container, cgroupsPath });
    expect(container).toMatchObject({ state: 'enforced', cgroupPath: cgroupsPath, podUid: pod.uid });
    expect(containerOf(opened.maps, native.cgroupId(`${example.directory}/pod${configHash}`))).toMatchObject({
      initPid: example.pid,
    });
  });

  it('binds a container that waited for its policy, when it comes', async () => {
    const example = await start({ labels: WEB });
    await expect(binder.bind(example.pod, example.container)).rejects.toThrow(PolicyNotReadyError);
    await expect(binder.bind(example.pod, example.container)).rejects.toMatchObject({
      problem: 'unknown',
      policy: 'shop/web',
    });
    expect(binder.container(example.container.id)?.state).toBe('waiting');
    expect(inKernel(example)).toBeUndefined();
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    expect(await binder.policyChanged('shop/web')).toMatchObject([{ state: 'enforced' }]);
    expect(allows(example, '/bin/a')).toBe(true);
  });

  it('tells a label that can name no policy', async () => {
    const example = await start({
      labels: { ...WEB, 'runtimeenforcer.kubewarden.io/policy': 'No Such/../Name' },
    });
    await expect(binder.bind(example.pod, example.container)).rejects.toMatchObject({ problem: 'invalid' });
  });

  it('follows a policy that begins and stops to name the container', async () => {
    await table.apply(examplePolicy('web', { other: ['/bin/a'] }));
    const example = await start({ labels: WEB });
    expect((await binder.bind(example.pod, example.container)).state).toBe('unbound');
    await table.apply(examplePolicy('web', { app: ['/bin/b'] }));
    expect(await binder.policyChanged('shop/web')).toHaveLength(1);
    expect(allows(example, '/bin/b')).toBe(true);
    await table.apply(examplePolicy('web', { other: ['/bin/a'] }, { unlistedContainers: 'deny' }));
    await binder.policyChanged('shop/web');
    expect(binder.container(example.container.id)).toMatchObject({ state: 'enforced', listed: false });
    expect(allows(example, '/bin/b')).toBe(false);
    await table.apply(examplePolicy('web', { other: ['/bin/a'] }));
    await binder.policyChanged('shop/web');
    expect(binder.container(example.container.id)?.state).toBe('unbound');
    await expect.poll(() => inKernel(example)).toBeUndefined();
  });

  it('keeps a container to the last list of a policy that was removed, until it ends', async () => {
    await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
    const example = await start({ labels: WEB });
    await binder.bind(example.pod, example.container);
    await table.remove('shop/web');
    await binder.policyChanged('shop/web');
    expect(allows(example, '/bin/a')).toBe(true);
    expect(table.state('shop/web')?.state).toBe('retained');
    await binder.unbind(example.container.id);
    expect(inKernel(example)).toBeUndefined();
    await expect.poll(() => table.state('shop/web')).toBeUndefined();
  });

  it('forgets a container but still knows whose its records are', async () => {
    const example = await start();
    const { container } = await binder.bind(example.pod, example.container);
    await binder.unbind(example.container.id);
    await binder.unbind('never-seen');
    expect(binder.container(example.container.id)).toBeUndefined();
    expect(inKernel(example)).toBeUndefined();
    expect(binder.lookup(container.slot, container.generation)).toBe(container);
  });

  it('takes calls for one container in their order', async () => {
    const example = await start();
    const calls = Array.from({ length: 6 }, (_, i) =>
      i % 2 === 0 ? binder.bind(example.pod, example.container) : binder.unbind(example.container.id),
    );
    await Promise.all(calls);
    expect(inKernel(example)).toBeUndefined();
    expect([...binder.containers()]).toEqual([]);
  });

  describe('reconcile', () => {
    it('binds what started unasked, drops what is gone, and reports both', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const [gone, late, unknown, missing] = [
        await start(),
        await start({ labels: WEB }),
        await start({ labels: { 'runtimeenforcer.kubewarden.io/policy': 'none' } }),
        await start({ labels: WEB }),
      ];
      await binder.bind(gone.pod, gone.container);
      const nowhere = { ...missing, container: { ...missing.container, cgroupsPath: '/none/such' } };
      const stopped = { ...gone, container: { ...gone.container, state: 'stopped' as const } };
      const report = await reconcile({ binder }, late, unknown, nowhere, stopped);
      expect(report.boundLate.map(({ containerId }) => containerId)).toEqual([late.container.id]);
      expect(report.waiting).toMatchObject([
        { container: { state: 'waiting' }, error: { problem: 'unknown' } },
      ]);
      expect(report.failed).toMatchObject([{ containerId: missing.container.id, podName: missing.pod.name }]);
      expect(report).toMatchObject({ kept: 0, gone: 1 });
      expect(inKernel(gone)).toBeUndefined();
      expect(await reconcile({ binder }, late)).toMatchObject({
        kept: 1,
        boundLate: [],
        failed: [],
        gone: 1,
      });
    });

    it('does not look for a container that was only made', async () => {
      const example = await start({ labels: WEB });
      const made = { ...example, container: { ...example.container, state: 'created' as const, pid: 0 } };
      expect(await reconcile({ binder }, made)).toMatchObject({ failed: [], waiting: [], boundLate: [] });
    });

    it('binds a container whose first process moved into a cgroup below', async () => {
      const example = await start({ nested: 'init.scope' });
      const report = await reconcile({ binder }, example);
      expect(report.boundLate).toMatchObject([{ pid: example.pid, mountNamespace: example.mountNamespace }]);
    });

    it('binds a container whose first process is gone, without its namespace', async () => {
      const example = await start();
      const other = { ...example, container: { ...example.container, pid: process.ppid } };
      const report = await reconcile({ binder }, other);
      expect(report.boundLate).toMatchObject([{ pid: 0, mountNamespace: 0 }]);
      expect(failures).toEqual(['container_process_unknown']);
    });

    it('survives names of every kind', async () => {
      const example = await start();
      const names = ['', '\0', '../..', '\ud800', '*', 'x'.repeat(100_000), '__proto__', '\u202e'];
      for (const name of names) {
        const odd = {
          ...example,
          pod: {
            ...example.pod,
            name,
            namespace: name,
            labels: new Map([['runtimeenforcer.kubewarden.io/policy', name]]),
          },
          container: { ...example.container, id: `odd-${names.indexOf(name)}`, name },
        };
        const report = await reconcile({ binder }, odd);
        expect(report.failed).toEqual([]);
      }
      expect((await binder.reconcile([], [example.container])).failed).toHaveLength(1);
    });
  });

  describe('after another agent', () => {
    it('keeps slots, policies and learning as they are', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const [bound, learned] = [await start({ labels: WEB }), await start()];
      await binder.bind(bound.pod, bound.container);
      await binder.bind(learned.pod, learned.container);
      const before = [inKernel(bound), inKernel(learned)];
      const next = await makeAgent();
      await next.table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      expect(await reconcile(next, bound, learned)).toMatchObject({ kept: 2, boundLate: [], gone: 0 });
      expect([inKernel(bound), inKernel(learned)]).toEqual(before);
      await next.table.apply(examplePolicy('web', { app: ['/bin/b'] }));
      expect([allows(bound, '/bin/a'), allows(bound, '/bin/b')]).toEqual([false, true]);
    });

    it('drops containers that ended meanwhile, with their policies', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const example = await start({ labels: WEB });
      await binder.bind(example.pod, example.container);
      const next = await makeAgent();
      expect(await reconcile(next)).toMatchObject({ gone: 1 });
      expect(inKernel(example)).toBeUndefined();
      await next.table.settled();
      expect((await opened.maps.cgroups.entries()).count).toBe(0);
      expect((await opened.maps.policies.entries()).values.every((byte) => byte === 0)).toBe(true);
    });

    it('keeps everything in force while a container cannot be looked at', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const example = await start({ labels: WEB });
      await binder.bind(example.pod, example.container);
      const next = await makeAgent();
      const unreadable = { ...example, container: { ...example.container, cgroupsPath: '/none/such' } };
      expect(await reconcile(next, unreadable)).toMatchObject({ gone: 0, failed: [{}] });
      expect(allows(example, '/bin/a')).toBe(true);
      expect(await reconcile(next, example)).toMatchObject({ kept: 1, failed: [] });
      expect(allows(example, '/bin/a')).toBe(true);
    });

    it('keeps the list of a policy that was removed meanwhile', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const example = await start({ labels: WEB });
      await binder.bind(example.pod, example.container);
      const next = await makeAgent();
      expect(await reconcile(next, example)).toMatchObject({ kept: 1, waiting: [] });
      expect(next.table.state('shop/web')?.state).toBe('retained');
      expect(allows(example, '/bin/a')).toBe(true);
    });

    it('known gap: a removed policy that a container holds is not carried into new maps, and that is reported', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const example = await start({ labels: WEB });
      await binder.bind(example.pod, example.container);
      await table.remove('shop/web');
      const before = opened;
      // As after a change of ABI or capacity: the next agent fills maps of its own.
      opened = openExampleMaps(native, { capacity: 2_048 });
      createNodeSettings(opened.maps.settings).reset();
      try {
        const next = await makeAgent();
        next.table.complete();
        const report = await reconcile(next, example);
        expect(report).toMatchObject({ kept: 0, failed: [], waiting: [{ error: { problem: 'unknown' } }] });
        expect(inKernel(example)).toBeUndefined();
        await next.table.settled();
      } finally {
        opened.close();
        opened = before;
      }
    });

    it('binds anew what is to be otherwise now', async () => {
      await table.apply(examplePolicy('web', { app: ['/bin/a'] }));
      const example = await start({ labels: WEB });
      await binder.bind(example.pod, example.container);
      const next = await makeAgent();
      await next.table.apply(examplePolicy('web', { other: ['/bin/a'] }));
      await reconcile(next, example);
      expect(next.binder.container(example.container.id)?.state).toBe('unbound');
      await expect.poll(() => inKernel(example)).toBeUndefined();
      await next.table.settled();
    });
  });
});
