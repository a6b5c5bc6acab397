import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CONTAINER_LAYOUT } from '../kernel/gen/abi.ts';
import { createGracePeriod } from '../kernel/grace-period.ts';
import { EXAMPLE_FACTS, openExampleMaps } from '../kernel/kernel-maps-example.ts';
import { loadNative } from '../kernel/native.ts';
import { createContainerSlots, SlotsExhaustedError, type ContainerSlots } from './container-slots.ts';
import { containerOf, slotOfNamespace } from './kernel-answer-example.ts';

const native = loadNative();
const content = { cgroupId: 70_001n, mountNamespace: 9_001, policyId: 5, learn: false, initPid: 321 };

describe('container slots', () => {
  let opened: ReturnType<typeof openExampleMaps>;
  let slots: ContainerSlots;
  const failures: string[] = [];
  const make = () =>
    createContainerSlots({
      maps: opened.maps,
      grace: createGracePeriod(native),
      hostMountNamespace: EXAMPLE_FACTS.hostMountNamespace,
      countFailure: (place) => failures.push(place),
    });

  beforeEach(() => {
    opened = openExampleMaps(native);
    slots = make();
  });
  afterEach(() => {
    opened.close();
    expect(failures).toEqual([]);
  });

  it('puts a container where the program tries first, and leads its namespace there', () => {
    const slot = slots.bind(content);
    expect(slot.slot).toBe(70_001 & 4_095);
    expect(containerOf(opened.maps, 70_001n)).toEqual({
      cgroup: 70_001n,
      mountNamespace: 9_001,
      policy: 5,
      flags: 0,
      generation: slot.generation,
      initPid: 321,
      slot: slot.slot,
    });
    expect(slotOfNamespace(opened.maps, 9_001)).toBe(slot.slot);
    expect(containerOf(opened.maps, 70_002n)).toBeUndefined();
  });

  it('finds another place where that one is taken, and for an id whose place would be 0', () => {
    const first = slots.bind(content);
    const second = slots.bind({ ...content, cgroupId: 70_001n + 4_096n, mountNamespace: 9_002, policyId: 6 });
    const third = slots.bind({ ...content, cgroupId: 4_096n, mountNamespace: 9_003, policyId: 7 });
    expect(new Set([first.slot, second.slot, third.slot, 0]).size).toBe(4);
    expect(containerOf(opened.maps, 70_001n)?.policy).toBe(5);
    expect(containerOf(opened.maps, 70_001n + 4_096n)?.policy).toBe(6);
    expect(containerOf(opened.maps, 4_096n)?.policy).toBe(7);
  });

  it('tells whether the maps say what was written, and takes out what it did not write', async () => {
    const slot = slots.bind(content);
    const other = slots.bind({ ...content, cgroupId: 70_002n, mountNamespace: 9_002 });
    expect([slots.holds(slot), slots.holds(other)]).toEqual([true, true]);
    expect(await slots.removeStrays()).toBe(0);
    const cgroup = Buffer.alloc(8);
    cgroup.writeBigUInt64LE(70_001n);
    opened.maps.cgroups.delete(cgroup);
    expect([slots.holds(slot), slots.holds(other)]).toEqual([false, true]);
    const number = Buffer.alloc(4);
    number.writeUInt32LE(other.slot);
    const changed = Buffer.from(opened.maps.containers.lookup(number) ?? []);
    changed.writeUInt32LE(9, CONTAINER_LAYOUT.offsets.policy);
    opened.maps.containers.update(number, changed);
    expect(slots.holds(other)).toBe(false);
    cgroup.writeBigUInt64LE(70_003n);
    number.writeUInt32LE(777);
    opened.maps.cgroups.update(cgroup, number);
    expect(await slots.removeStrays()).toBe(1);
    expect(opened.maps.cgroups.lookup(cgroup)).toBeUndefined();
  });

  it('never leaves a container out while it is bound anew', async () => {
    const first = slots.bind(content);
    const second = slots.bind({ ...content, policyId: 6 });
    expect(containerOf(opened.maps, 70_001n)).toBeDefined();
    await slots.release(first);
    expect(containerOf(opened.maps, 70_001n)).toMatchObject({ policy: 6, slot: second.slot });
    expect(slotOfNamespace(opened.maps, 9_001)).toBe(second.slot);
    const third = slots.bind({ ...content, policyId: 7 });
    await slots.release(second);
    expect(third.slot).toBe(first.slot);
    expect(third.generation).not.toBe(first.generation);
    expect(containerOf(opened.maps, 70_001n)?.policy).toBe(7);
  });

  it('takes a container out of all maps, and uses its place again with zeroed totals', async () => {
    const slot = slots.bind(content);
    const key = Buffer.alloc(4);
    key.writeUInt32LE(slot.slot);
    opened.maps.containerCounters.update(key, new Uint8Array(16).fill(1));
    await slots.release(slot);
    expect(containerOf(opened.maps, 70_001n)).toBeUndefined();
    expect(slotOfNamespace(opened.maps, 9_001)).toBeUndefined();
    expect((await opened.maps.cgroups.entries()).count).toBe(0);
    expect(slots.bind(content).slot).toBe(slot.slot);
    expect(opened.maps.containerCounters.lookup(key)).toEqual(new Uint8Array(16));
  });

  it('does not lead the host namespace, nor an unknown one, to a container', () => {
    slots.bind({ ...content, mountNamespace: EXAMPLE_FACTS.hostMountNamespace });
    slots.bind({ ...content, cgroupId: 2n, mountNamespace: 0 });
    expect(slotOfNamespace(opened.maps, EXAMPLE_FACTS.hostMountNamespace)).toBeUndefined();
    expect(slotOfNamespace(opened.maps, 0)).toBeUndefined();
  });

  it('says so when every place is taken', () => {
    const all = slots.free;
    for (let i = 1; i <= all; i++)
      slots.bind({ ...content, cgroupId: BigInt(i), mountNamespace: 10_000 + i });
    expect(slots.free).toBe(0);
    expect(() => slots.bind(content)).toThrow(SlotsExhaustedError);
    expect(containerOf(opened.maps, 17n)?.mountNamespace).toBe(10_017);
  });

  it('leaves what was bound in force when it cannot be bound anew', async () => {
    const bound = slots.bind(content);
    const { cgroups } = opened.maps;
    let updates = 0;
    const failing = createContainerSlots({
      maps: {
        ...opened.maps,
        cgroups: {
          ...cgroups,
          update(key, value) {
            // The first is the one that binds; what follows puts things back.
            if (updates++ === 0) throw new Error('no room');
            cgroups.update(key, value);
          },
        },
      },
      grace: createGracePeriod(native),
      hostMountNamespace: EXAMPLE_FACTS.hostMountNamespace,
      countFailure: (place) => failures.push(place),
    });
    await failing.adopt();
    expect(() => failing.bind({ ...content, policyId: 6 })).toThrow('no room');
    await createGracePeriod(native).passed();
    expect(containerOf(opened.maps, 70_001n)).toMatchObject({ slot: bound.slot, policy: 5 });
    expect(slotOfNamespace(opened.maps, 9_001)).toBe(bound.slot);
  });

  describe('of an agent before', () => {
    it('are read as they were bound', async () => {
      const bound = [
        slots.bind(content),
        slots.bind({ ...content, cgroupId: 4_096n, mountNamespace: 0, learn: true }),
      ];
      const adopted = await make().adopt();
      expect(adopted.toSorted((a, b) => a.slot - b.slot)).toEqual(bound.toSorted((a, b) => a.slot - b.slot));
    });

    it('are not given away, and their generations go on', async () => {
      const bound = slots.bind(content);
      const next = make();
      const [adopted] = await next.adopt();
      const other = next.bind({ ...content, cgroupId: 70_001n + 4_096n, mountNamespace: 9_002 });
      expect(other.slot).not.toBe(bound.slot);
      if (adopted !== undefined) await next.release(adopted);
      expect(next.bind(content)).toMatchObject({ slot: bound.slot, generation: bound.generation + 1 });
    });

    it('are put right where it was killed between two steps', async () => {
      const first = slots.bind(content);
      const second = slots.bind({ ...content, policyId: 6 });
      // Killed before the old slot was released: the program would still find it first.
      expect(containerOf(opened.maps, 70_001n)?.slot).toBe(first.slot);
      const leftover = Buffer.alloc(4);
      leftover.writeUInt32LE(8_888);
      opened.maps.mountNamespaces.update(leftover, leftover);
      const adopted = await make().adopt();
      expect(adopted.map(({ slot }) => slot)).toEqual([second.slot]);
      expect(containerOf(opened.maps, 70_001n)).toMatchObject({ slot: second.slot, policy: 6 });
      expect(slotOfNamespace(opened.maps, 8_888)).toBeUndefined();
      expect(slotOfNamespace(opened.maps, 9_001)).toBe(second.slot);
    });
  });

  it('knows the layout of a slot', () => {
    expect(opened.maps.containers.valueSize).toBe(CONTAINER_LAYOUT.size);
  });
});
