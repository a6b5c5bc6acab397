import { afterEach, beforeEach, expect, it } from 'vitest';
import { CONTAINER_LAYOUT } from '../kernel/gen/abi.ts';
import { createGracePeriod } from '../kernel/grace-period.ts';
import { EXAMPLE_FACTS, openExampleMaps } from '../kernel/kernel-maps-example.ts';
import { loadNative } from '../kernel/native.ts';
import { createPolicyWords } from '../policies/policy-words.ts';
import { createContainerSlots, type ContainerSlots } from './container-slots.ts';
import { readKernelBindings } from './kernel-bindings.ts';

const native = loadNative();
const content = { cgroupId: 70_001n, mountNamespace: 9_001, policyId: 5, learn: false, initPid: 321 };

let opened: ReturnType<typeof openExampleMaps>;
let slots: ContainerSlots;
beforeEach(() => {
  opened = openExampleMaps(native);
  slots = createContainerSlots({
    maps: opened.maps,
    grace: createGracePeriod(native),
    hostMountNamespace: EXAMPLE_FACTS.hostMountNamespace,
    countFailure: (place) => expect.fail(place),
  });
});
afterEach(() => opened.close());

const bindings = async () => await readKernelBindings(opened.maps, EXAMPLE_FACTS.hostMountNamespace);

function key(bytes: 4 | 8, value: number | bigint): Buffer {
  const buffer = Buffer.alloc(bytes);
  if (bytes === 4) buffer.writeUInt32LE(Number(value));
  else buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}

it('tells every container as the kernel has it', async () => {
  createPolicyWords(opened.maps.policies).write(5, {
    ...{ list: 1, mode: 'monitor', otherMountNamespaces: 'deny' },
  });
  const learned = slots.bind({
    ...content,
    ...{ cgroupId: 70_002n, mountNamespace: 0, policyId: 0, learn: true },
  });
  const bound = slots.bind(content);
  expect(await bindings()).toEqual([
    {
      ...{ cgroupId: 70_001n, slot: bound.slot, indexed: true, slotCgroupId: 70_001n },
      ...{ generation: bound.generation, mountNamespace: 9_001, policyId: 5 },
      ...{ learning: false, mode: 'monitor', namespaceIndexed: true },
    },
    {
      ...{ cgroupId: 70_002n, slot: learned.slot, indexed: true, slotCgroupId: 70_002n },
      ...{ generation: learned.generation, mountNamespace: 0, policyId: 0 },
      ...{ learning: true, mode: 'unknown', namespaceIndexed: true },
    },
  ]);
  await slots.release(bound);
  await slots.release(learned);
  expect(await bindings()).toEqual([]);
});

it('tells an index that leads to the wrong place, and a place that nothing leads to', async () => {
  const bound = slots.bind(content);
  const { cgroups, containers } = opened.maps;
  cgroups.update(key(8, 70_001n), key(4, 777));
  expect(await bindings()).toEqual([
    expect.objectContaining({ slot: bound.slot, indexed: false, slotCgroupId: 70_001n }),
    expect.objectContaining({ cgroupId: 70_001n, slot: 777, indexed: true, slotCgroupId: 0n }),
  ]);
  cgroups.delete(key(8, 70_001n));
  const changed = Buffer.from(containers.lookup(key(4, bound.slot)) ?? []);
  changed.writeBigUInt64LE(70_009n, CONTAINER_LAYOUT.offsets.cgroup);
  containers.update(key(4, bound.slot), changed);
  expect(await bindings()).toEqual([
    expect.objectContaining({ cgroupId: 70_009n, slot: bound.slot, indexed: false }),
  ]);
});

it('tells a mount namespace that leads elsewhere, but not that of the host, which leads nowhere', async () => {
  slots.bind(content);
  slots.bind({ ...content, cgroupId: 70_002n, mountNamespace: EXAMPLE_FACTS.hostMountNamespace });
  const indexed = async () => (await bindings()).map(({ namespaceIndexed }) => namespaceIndexed);
  expect(await indexed()).toEqual([true, true]);
  const { mountNamespaces } = opened.maps;
  mountNamespaces.update(key(4, 9_001), key(4, 777));
  expect(await indexed()).toEqual([false, true]);
  mountNamespaces.delete(key(4, 9_001));
  expect(await indexed()).toEqual([false, true]);
});
