import { quote } from '@runtime-enforcer/api/field-error';
import { readPolicyBinding } from '@runtime-enforcer/api/binding';
import { workloadFromPod } from '@runtime-enforcer/api/workload';
import type { CountFailure } from '../kernel/failures.ts';
import type { Native } from '../kernel/native.ts';
import type { NodeSettings } from '../kernel/node-settings.ts';
import type { Logger } from '../nri/handlers.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import type { PolicyTable, PolicyUse } from '../policies/policy-table.ts';
import type { BoundContainer } from './bound-container.ts';
import { findContainerCgroup, isBelow, processCgroup, type CgroupTree } from './cgroup-tree.ts';
import {
  PolicyNotReadyError,
  type BindResult,
  type ContainerBinder,
  type ReconcileReport,
} from './container-binder.ts';
import type { ContainerSlots, Slot } from './container-slots.ts';
import { readMountNamespace, readRunningPrograms } from './running-programs.ts';

/** Containers that ended and whose records may still come. */
const ENDED_MAX = 1_024;

export interface KernelBinderParts {
  readonly native: Pick<Native, 'cgroupId'>;
  readonly tree: CgroupTree;
  readonly slots: ContainerSlots;
  readonly settings: Pick<NodeSettings, 'coverLevels'>;
  readonly table: PolicyTable;
  /** Whether containers whose pod names no policy are learned. */
  readonly learning: boolean;
  /** The agent's own pod and cgroup, which are never bound: nothing that a tenant writes decides that. */
  readonly own: { readonly podUid: string | undefined; readonly cgroup: string | undefined };
  readonly log: Logger;
  readonly countFailure: CountFailure;
}

/** A container, and what the kernel holds of it. */
interface Entry {
  readonly container: BoundContainer;
  readonly slot: Slot | undefined;
  readonly use: PolicyUse | undefined;
}

/** What was found of a container before it is decided what becomes of it. */
type Found = Omit<BoundContainer, 'slot' | 'generation' | 'state' | 'listed'>;

/** The agent's own cgroup; undefined where it is the tree's root, which would be everybody's. */
export async function ownCgroup(tree: CgroupTree): Promise<string | undefined> {
  const path = await processCgroup(tree, 'self');
  return path === undefined || path === '/' || path.includes('..') ? undefined : path;
}

export function createKernelBinder(parts: KernelBinderParts): ContainerBinder {
  const { native, tree, slots, settings, table, learning, own, log, countFailure } = parts;
  const entries = new Map<string, Entry>();
  const bySlot = new Map<string, BoundContainer>();
  const ended: string[] = [];
  const turns = new Map<string, Promise<unknown>>();
  let inherited: Map<bigint, Slot> | undefined;

  /** Runs `action` after what was asked for this container before. */
  const inTurn = <T>(containerId: string, action: () => Promise<T>): Promise<T> => {
    const turn = (turns.get(containerId) ?? Promise.resolve()).then(action, action);
    turns.set(containerId, turn);
    const forget = (): void => {
      if (turns.get(containerId) === turn) turns.delete(containerId);
    };
    turn.then(forget, forget);
    return turn;
  };

  const find = async (pod: NriPodSandbox, container: NriContainer, isStarting: boolean): Promise<Found> => {
    const cgroup = await findContainerCgroup(native, tree, container.cgroupsPath, container.pid);
    settings.coverLevels(cgroup.level, cgroup.level);
    const binding = readPolicyBinding(pod.labels);
    const policy =
      binding.kind === 'policy'
        ? `${pod.namespace}/${binding.policyName}`
        : binding.kind === 'invalid'
          ? `${pod.namespace}/`
          : undefined;
    return {
      containerId: container.id,
      containerName: container.name,
      podUid: pod.uid,
      podName: pod.name,
      namespace: pod.namespace,
      labels: pod.labels,
      image: container.image,
      workload: workloadFromPod(pod.name, pod.labels),
      cgroupId: cgroup.id,
      cgroupPath: cgroup.path,
      mountNamespace: await mountNamespaceOf(container.pid, cgroup.path, isStarting),
      pid: container.pid,
      ...(policy !== undefined && { policy }),
    };
  };

  /**
   * A container that starts has a first process in its cgroup, or something is wrong. One that runs may have moved it
   * away: then its namespace is not known, and its list counts all the same.
   */
  const mountNamespaceOf = async (pid: number, cgroupPath: string, isStarting: boolean): Promise<number> => {
    const at = pid === 0 ? undefined : await processCgroup(tree, pid);
    if (at !== undefined && isBelow(at, cgroupPath)) return await readMountNamespace(pid);
    if (isStarting) {
      throw new Error(
        `its first process (pid ${pid}) is not in its cgroup ${quote(cgroupPath)} but ` +
          (at === undefined ? 'gone' : `in ${quote(at)}`),
      );
    }
    countFailure('container_process_unknown');
    return 0;
  };

  const isOwn = (found: Found): boolean =>
    found.podUid === own.podUid || (own.cgroup !== undefined && isBelow(own.cgroup, found.cgroupPath));

  /** Puts a container into the state that it is to have now, whatever it had before. */
  const settle = async (found: Found, labels: ReadonlyMap<string, string>): Promise<Entry> => {
    const binding = readPolicyBinding(labels);
    if (isOwn(found)) return replace(found, { state: 'unbound', listed: false });
    if (binding.kind === 'invalid') {
      wait(found);
      throw new PolicyNotReadyError(found.policy ?? '', 'invalid', binding.message);
    }
    if (found.policy === undefined) {
      return replace(found, { state: learning ? 'learning' : 'unbound', listed: false });
    }
    const answer = await table.acquire(found.policy, found.containerName);
    switch (answer.kind) {
      case 'enforced':
        return replace(found, { state: 'enforced', listed: answer.use.listed }, answer.use);
      case 'unrestricted':
        return replace(found, { state: 'unbound', listed: false });
      case 'unknown':
        wait(found);
        throw new PolicyNotReadyError(found.policy, 'unknown', 'the policy does not exist');
      case 'failed':
        wait(found);
        throw new PolicyNotReadyError(found.policy, 'failed', answer.message);
    }
  };

  /** What a container is held to already stays in force. */
  const wait = (found: Found): void => {
    if (entries.get(found.containerId)?.use === undefined)
      replace(found, { state: 'waiting', listed: false });
  };

  /** The new slot decides before the old one goes. */
  const replace = (
    found: Found,
    { state, listed }: Pick<BoundContainer, 'state' | 'listed'>,
    use?: PolicyUse,
  ): Entry => {
    const before = entries.get(found.containerId);
    const needsSlot = state === 'enforced' || state === 'learning';
    let slot: Slot | undefined;
    try {
      slot = needsSlot
        ? slots.bind({
            cgroupId: found.cgroupId,
            mountNamespace: found.mountNamespace,
            policyId: use?.policyId ?? 0,
            learn: state === 'learning',
            initPid: found.pid,
          })
        : undefined;
    } catch (error) {
      use?.release();
      throw error;
    }
    const entry = remember(found, { state, listed }, slot, use);
    if (before !== undefined) void forget(before);
    return entry;
  };

  const remember = (
    found: Found,
    { state, listed }: Pick<BoundContainer, 'state' | 'listed'>,
    slot: Slot | undefined,
    use: PolicyUse | undefined,
  ): Entry => {
    const container: BoundContainer = {
      ...found,
      slot: slot?.slot ?? 0,
      generation: slot?.generation ?? 0,
      state,
      listed,
    };
    const entry: Entry = { container, slot, use };
    entries.set(container.containerId, entry);
    if (slot !== undefined) bySlot.set(slotKey(slot.slot, slot.generation), container);
    return entry;
  };

  /** Takes an entry that is not in `entries` any more out of the kernel, in the background. */
  const forget = ({ slot, use }: Pick<Entry, 'slot' | 'use'>): Promise<void> => {
    if (slot === undefined) {
      use?.release();
      return Promise.resolve();
    }
    ended.push(slotKey(slot.slot, slot.generation));
    while (ended.length > ENDED_MAX) bySlot.delete(ended.shift() ?? '');
    return slots.release(slot).then(
      () => use?.release(),
      (error: unknown) => {
        countFailure('container_unbind');
        log.error({ err: error, slot: slot.slot }, 'a container could not be taken out of the kernel');
      },
    );
  };

  /** Goes on with what an agent before had bound, if that is still what is to be. */
  const takeOver = (found: Found): boolean => {
    const slot = inherited?.get(found.cgroupId);
    if (slot === undefined || isOwn(found)) return false;
    inherited?.delete(found.cgroupId);
    const isSame = slot.mountNamespace === found.mountNamespace || found.mountNamespace === 0;
    if (found.policy === undefined && learning && slot.learn && slot.policyId === 0 && isSame) {
      remember(found, { state: 'learning', listed: false }, slot, undefined);
      return true;
    }
    const use =
      found.policy !== undefined && slot.policyId !== 0 && isSame
        ? table.inherit(found.policy, found.containerName, slot.policyId)
        : undefined;
    if (use !== undefined) {
      remember(found, { state: 'enforced', listed: use.listed }, slot, use);
      return true;
    }
    // Bound anew over it; it goes when the new one is there.
    remember(found, { state: 'waiting', listed: false }, slot, undefined);
    return false;
  };

  const reconcileOne = async (
    pod: NriPodSandbox,
    container: NriContainer,
  ): Promise<'kept' | 'late' | 'bound'> => {
    if (entries.get(container.id)?.slot !== undefined) return 'kept';
    const found = await find(pod, container, false);
    if (takeOver(found)) {
      const taken = entries.get(container.id);
      if (taken?.use?.stale === true) await settle(found, pod.labels);
      return 'kept';
    }
    const { container: bound } = await settle(found, pod.labels);
    const isRunning = container.state === 'running' || container.state === 'paused';
    return isRunning && bound.state !== 'unbound' ? 'late' : 'bound';
  };

  return {
    bind: (pod, container) =>
      inTurn(container.id, async (): Promise<BindResult> => {
        const { container: bound } = await settle(await find(pod, container, true), pod.labels);
        if (bound.state === 'waiting') throw new Error('a waiting container was taken for bound');
        return { state: bound.state, container: bound };
      }),
    unbind: (containerId) =>
      inTurn(containerId, async () => {
        const entry = entries.get(containerId);
        if (entry === undefined) return;
        entries.delete(containerId);
        await forget(entry);
      }),
    async policyChanged(namespacedName) {
      const concerned = Array.from(entries.values()).filter(
        ({ container }) => container.policy === namespacedName,
      );
      const bound: BoundContainer[] = [];
      for (const { container } of concerned) {
        await inTurn(container.containerId, async () => {
          const entry = entries.get(container.containerId);
          if (entry === undefined || (entry.use !== undefined && !entry.use.stale)) return;
          try {
            const after = await settle(entry.container, entry.container.labels);
            if (after.container.state === 'enforced') bound.push(after.container);
          } catch (error) {
            if (error instanceof PolicyNotReadyError) return;
            countFailure('container_unbind');
            log.error(
              { err: error, containerId: container.containerId },
              'a container could not be bound again',
            );
          }
        });
      }
      return bound;
    },
    async reconcile(pods, containers) {
      const isFirst = inherited === undefined;
      inherited ??= new Map((await slots.adopt()).map((slot) => [slot.cgroupId, slot]));
      const podsById = new Map(pods.map((pod) => [pod.id, pod]));
      const present = new Set(containers.map(({ id }) => id));
      const boundLate: BoundContainer[] = [];
      const waiting: ReconcileReport['waiting'][number][] = [];
      const failed: ReconcileReport['failed'][number][] = [];
      let kept = 0;
      let gone = 0;

      for (const containerId of [...entries.keys()].filter((id) => !present.has(id))) {
        gone++;
        await this.unbind(containerId);
      }
      for (const container of containers) {
        const pod = podsById.get(container.podSandboxId);
        if (pod === undefined) continue;
        try {
          const came = await inTurn(container.id, () => reconcileOne(pod, container));
          if (came === 'kept') kept++;
          const bound = entries.get(container.id)?.container;
          if (came === 'late' && bound !== undefined) boundLate.push(bound);
        } catch (error) {
          const known = entries.get(container.id)?.container;
          if (error instanceof PolicyNotReadyError && known !== undefined) {
            waiting.push({ container: known, error });
          } else {
            failed.push({
              containerId: container.id,
              containerName: container.name,
              podName: pod.name,
              namespace: pod.namespace,
              error: error instanceof Error ? error : new Error(String(error)),
            });
          }
        }
      }
      if (isFirst) {
        // Cgroups of containers that ended while no agent was there.
        await Promise.all(Array.from(inherited.values(), (slot) => forget({ slot, use: undefined })));
        gone += inherited.size;
        inherited.clear();
        await table.dropInherited();
      }
      return { boundLate, kept, waiting, failed, gone };
    },
    async running(container) {
      const { programs, incomplete } = await readRunningPrograms(
        `${tree.root}${container.cgroupPath}`,
        container.mountNamespace,
        () => countFailure('running_program_unreadable'),
      );
      return { container, programs, incomplete };
    },
    *containers() {
      for (const { container } of entries.values()) yield container;
    },
    container: (containerId) => entries.get(containerId)?.container,
    lookup: (slot, generation) => bySlot.get(slotKey(slot, generation)),
  };
}

function slotKey(slot: number, generation: number): string {
  return `${slot}:${generation}`;
}
