import { readPolicyBinding } from '@runtime-enforcer/api/binding';
import { workloadFromPod } from '@runtime-enforcer/api/workload';
import type { CountFailure } from '../kernel/failures.ts';
import type { Native } from '../kernel/native.ts';
import type { NodeSettings } from '../kernel/node-settings.ts';
import type { Logger } from '../nri/handlers.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import type { PolicyTable, PolicyUse } from '../policies/policy-table.ts';
import type { BoundContainer } from './bound-container.ts';
import { findContainerCgroup, type CgroupTree } from './cgroup-tree.ts';
import {
  PolicyNotReadyError,
  type BindResult,
  type ContainerBinder,
  type ReconcileReport,
} from './container-binder.ts';
import type { ContainerSlots, Slot } from './container-slots.ts';
import { findRunningProcess, findStartingProcess } from './container-process.ts';
import { isOwnPod, type OwnPlace } from './own-pods.ts';
import { readRunningPrograms } from './running-programs.ts';

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
  /** Where the agent itself runs: the product's pods are never bound, nor is the container that this process is in. */
  readonly own: OwnPlace;
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
type Found = Omit<BoundContainer, 'slot' | 'generation' | 'policyId' | 'state' | 'listed'>;

export function createKernelBinder(parts: KernelBinderParts): ContainerBinder {
  const { native, tree, slots, settings, table, learning, own, log, countFailure } = parts;
  const entries = new Map<string, Entry>();
  const bySlot = new Map<string, BoundContainer>();
  const ended: string[] = [];
  const turns = new Map<string, Promise<unknown>>();
  let inherited: Map<bigint, Slot> | undefined;
  let inheritanceDropped = false;

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

  /** What is known of a container without looking for it. */
  const describe = (pod: NriPodSandbox, container: NriContainer): Found => {
    const binding = readPolicyBinding(pod.labels);
    const policy =
      binding.kind === 'policy' ? binding.policyName : binding.kind === 'invalid' ? '' : undefined;
    return {
      containerId: container.id,
      containerName: container.name,
      podUid: pod.uid,
      podName: pod.name,
      namespace: pod.namespace,
      labels: pod.labels,
      image: container.image,
      workload: workloadFromPod(pod.name, pod.labels),
      cgroupId: 0n,
      cgroupPath: '',
      mountNamespace: 0,
      pid: container.pid,
      ...(policy !== undefined && { policy: `${pod.namespace}/${policy}` }),
    };
  };

  /** Undefined for a container that is left alone, wherever it is. */
  const locate = async (
    known: Found,
    container: NriContainer,
    isStarting: boolean,
  ): Promise<Found | undefined> => {
    if ((known.policy === undefined && !learning) || isOwnPod(known, own)) return undefined;
    const cgroup = await findContainerCgroup(native, tree, container.cgroupsPath, container.pid);
    const { pid, mountNamespace, isAgent } = isStarting
      ? findStartingProcess(cgroup.directory, container.pid)
      : await findRunningProcess(cgroup.directory, container.pid);
    if (isAgent) return undefined;
    if (mountNamespace === 0) countFailure('container_process_unknown');
    settings.coverLevels(cgroup.level, cgroup.level + tree.hiddenLevelsMax);
    return { ...known, cgroupId: cgroup.id, cgroupPath: cgroup.path, pid, mountNamespace };
  };

  const leaveAlone = (known: Found): Entry => replace(known, { state: 'unbound', listed: false });

  /** Puts a container into the state that it is to have now, whatever it had before. */
  const settle = async (found: Found, labels: ReadonlyMap<string, string>): Promise<Entry> => {
    const binding = readPolicyBinding(labels);
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
        return leaveAlone(found);
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
      policyId: slot?.policyId ?? 0,
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

  /**
   * Goes on with what an agent before had bound, if that is still what is to be; otherwise that stays in force until
   * the container is bound anew.
   */
  const takeOver = (found: Found, slot: Slot): boolean => {
    const isSame = found.mountNamespace === 0 || slot.mountNamespace === found.mountNamespace;
    if (found.policy !== undefined && slot.policyId !== 0) {
      const use = table.inherit(found.policy, found.containerName, slot.policyId);
      if (use !== undefined) {
        const entry = remember(found, { state: 'enforced', listed: use.listed }, slot, use);
        if (isSame) return true;
        // Its process has another mount namespace than was recorded: the same policy, in a slot that says so.
        replace(found, entry.container, table.again(use));
        return true;
      }
    }
    const isLearned = found.policy === undefined && slot.learn && slot.policyId === 0;
    remember(found, { state: isLearned ? 'learning' : 'waiting', listed: false }, slot, undefined);
    return isLearned && isSame;
  };

  const reconcileOne = async (
    pod: NriPodSandbox,
    container: NriContainer,
  ): Promise<'kept' | 'late' | 'bound' | 'repaired'> => {
    const held = entries.get(container.id)?.slot;
    if (held !== undefined && slots.holds(held)) return 'kept';
    const known = describe(pod, container);
    const found = await locate(known, container, false);
    if (found === undefined) {
      leaveAlone(known);
      return 'bound';
    }
    const slot = inherited?.get(found.cgroupId);
    if (slot !== undefined) {
      inherited?.delete(found.cgroupId);
      if (takeOver(found, slot)) return 'kept';
    }
    const { container: bound } = await settle(found, pod.labels);
    if (held !== undefined) return 'repaired';
    const isRunning = container.state === 'running' || container.state === 'paused';
    return isRunning && bound.state !== 'unbound' ? 'late' : 'bound';
  };

  const unbind = (containerId: string): Promise<void> =>
    inTurn(containerId, async () => {
      const entry = entries.get(containerId);
      if (entry === undefined) return;
      entries.delete(containerId);
      await forget(entry);
    });

  return {
    bind: (pod, container) =>
      inTurn(container.id, async (): Promise<BindResult> => {
        const known = describe(pod, container);
        const found = await locate(known, container, true);
        const { container: bound } =
          found === undefined ? leaveAlone(known) : await settle(found, pod.labels);
        if (bound.state === 'waiting') throw new Error('a waiting container was taken for bound');
        return { state: bound.state, container: bound };
      }),
    unbind,
    async policyChanged(namespacedName) {
      const concerned = Array.from(entries.values()).filter(
        // One that is left alone was not looked for.
        ({ container }) => container.policy === namespacedName && container.cgroupId !== 0n,
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
      inherited ??= new Map(
        (await slots.adopt())
          .filter(({ slot, generation }) => !bySlot.has(slotKey(slot, generation)))
          .map((slot) => [slot.cgroupId, slot]),
      );
      const podsById = new Map(pods.map((pod) => [pod.id, pod]));
      const present = containers.filter(isPresent);
      const presentIds = new Set(present.map(({ id }) => id));
      const boundLate: BoundContainer[] = [];
      const repaired: BoundContainer[] = [];
      const waiting: ReconcileReport['waiting'][number][] = [];
      const failed: ReconcileReport['failed'][number][] = [];
      let kept = 0;
      let gone = 0;

      for (const containerId of [...entries.keys()].filter((id) => !presentIds.has(id))) {
        gone++;
        await unbind(containerId);
      }
      for (const container of present) {
        const pod = podsById.get(container.podSandboxId);
        try {
          if (pod === undefined) throw new Error('the runtime does not tell its pod');
          const came = await inTurn(container.id, () => reconcileOne(pod, container));
          if (came === 'kept') kept++;
          const bound = entries.get(container.id)?.container;
          if (came === 'late' && bound !== undefined) boundLate.push(bound);
          if (came === 'repaired' && bound !== undefined) repaired.push(bound);
        } catch (error) {
          const known = entries.get(container.id)?.container;
          if (error instanceof PolicyNotReadyError && known !== undefined) {
            waiting.push({ container: known, error });
            continue;
          }
          failed.push({
            containerId: container.id,
            containerName: container.name,
            podName: pod?.name ?? '',
            namespace: pod?.namespace ?? '',
            error: error instanceof Error ? error : new Error(String(error)),
          });
        }
      }
      // What could not be looked at may be what an agent before had bound: that stays in force until it can be.
      if (failed.length === 0 && !inheritanceDropped) {
        inheritanceDropped = true;
        gone += inherited.size;
        await Promise.all(Array.from(inherited.values(), (slot) => forget({ slot, use: undefined })));
        inherited.clear();
        await table.dropInherited();
      }
      const strays = await slots.removeStrays().catch((error: unknown) => {
        countFailure('container_unbind');
        log.error({ err: error }, 'whether the kernel holds more than there is could not be read');
        return 0;
      });
      return { boundLate, kept, repaired, strays, waiting, failed, gone };
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

/** A container that was made but not started has no process yet; the runtime asks when it starts. */
function isPresent({ state, pid }: NriContainer): boolean {
  return state !== 'stopped' && !(state === 'created' && pid === 0);
}
