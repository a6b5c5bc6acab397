import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import type { BoundContainer } from '../containers/bound-container.ts';
import {
  PolicyNotReadyError,
  type ContainerBinder,
  type ReconcileReport,
} from '../containers/container-binder.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger, NriHandlers } from '../nri/handlers.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import { shownName } from './shown-name.ts';

/** What the agent does beyond binding. Must not reject or throw. */
export interface RuntimeEvents {
  /** The kernel agrees with what the runtime knows; the first time, the program may begin to decide. */
  onReconciled(): Promise<void>;
  /** The container ran before it was bound. */
  onBoundLate(container: BoundContainer): void;
  /** The container is about to be forgotten. */
  onRemove(container: BoundContainer): void;
}

/** For people who look at a pod: what became of its containers. Must not throw or wait. */
export interface ContainerNotices {
  /** Kept from starting. */
  refused?(pod: NriPodSandbox, container: NriContainer, reason: string): void;
  /** Starts although it could not be bound to the policy that it names. */
  unenforced?(pod: NriPodSandbox, container: NriContainer, reason: string): void;
  /** Ran, unchecked, before it was bound. */
  boundLate?(container: BoundContainer): void;
  /** Runs unchecked, until its policy is there. */
  waiting?(container: BoundContainer, problem: string): void;
}

/** Answers the container runtime: binds each container, and refuses those that cannot be bound. */
export function createRuntimeHandlers(parts: {
  binder: ContainerBinder;
  events: RuntimeEvents;
  notices?: ContainerNotices;
  /** Brings the policy of this name up to date, if it is on its way into the kernel. */
  policyOnItsWay?: (namespacedName: string) => Promise<void>;
  /** Whether a container that cannot be bound starts nevertheless. */
  failOpen: boolean;
  log: Logger;
  counters: AgentCounters;
}): NriHandlers {
  const { binder, events, notices = {}, policyOnItsWay, failOpen, log, counters } = parts;

  const report = (result: ReconcileReport): void => {
    const { boundLate, kept, repaired, strays, waiting, failed, gone } = result;
    counters.add('containers_bound_late', boundLate.length);
    counters.add('containers_unbindable', failed.length);
    counters.add('containers_repaired', repaired.length);
    counters.add('strays_removed', strays);
    for (const { namespace, podName, containerName, state } of repaired)
      log.error(
        { namespace, podName, containerName, state },
        'the kernel held something else of a container',
      );
    if (strays > 0) log.error({ strays }, 'the kernel held places of containers that there are not');
    for (const { error, ...container } of failed)
      log.error({ ...container, err: error }, 'container not bound');
    for (const { container, error } of waiting) {
      const { namespace, podName, containerName } = container;
      log.error(
        { namespace, podName, containerName, policy: error.policy, problem: error.message },
        'container runs unchecked until its policy is there',
      );
      notices.waiting?.(container, error.message);
    }
    for (const container of boundLate) events.onBoundLate(container);
    log.info(
      {
        ...{ boundLate: boundLate.length, kept, repaired: repaired.length, strays },
        ...{ waiting: waiting.length, failed: failed.length, gone },
      },
      'containers of the runtime are bound',
    );
  };

  return {
    async synchronize(pods, containers, runtime) {
      log.info({ runtime: runtime.name, version: runtime.version }, 'the container runtime tells its state');
      report(await binder.reconcile(pods, containers));
      await events.onReconciled();
    },
    async startContainer(pod, container) {
      try {
        const policy = pod.labels.get(POLICY_LABEL);
        if (policy !== undefined) await policyOnItsWay?.(`${pod.namespace}/${policy}`);
        const { state } = await binder.bind(pod, container);
        log.debug({ ...namesOf(pod, container), state }, 'container bound');
      } catch (error) {
        const reason = refusalReason(pod, error);
        if (!pod.labels.has(POLICY_LABEL)) {
          counters.add('containers_unbindable');
          log.warn(
            { ...namesOf(pod, container), err: error },
            'container is not learned: it could not be bound',
          );
          return;
        }
        if (failOpen) {
          counters.add('containers_failed_open');
          notices.unenforced?.(pod, container, reason);
          log.warn(
            { ...namesOf(pod, container), reason },
            'container starts without enforcement because of NRI_FAILOPEN=true (nriFailopen=true in the chart)',
          );
          return;
        }
        counters.add('containers_refused');
        notices.refused?.(pod, container, reason);
        // It never runs: kubelet makes another one when it tries again.
        if (binder.container(container.id)?.state === 'waiting') await binder.unbind(container.id);
        log.error({ ...namesOf(pod, container), reason }, 'container refused');
        throw new Error(
          `container ${shownName(pod.name)}/${shownName(container.name)} was prevented from starting by runtime-enforcer: ` +
            `${reason}; NRI_FAILOPEN=true in the agent's environment lets such containers start unenforced`,
          { cause: error },
        );
      }
    },
    async removeContainer(_pod, container) {
      const known = binder.container(container.id);
      if (known !== undefined) events.onRemove(known);
      await binder.unbind(container.id);
    },
  };
}

function refusalReason(pod: NriPodSandbox, error: unknown): string {
  if (!(error instanceof PolicyNotReadyError)) return describeError(error);
  const policy = pod.labels.get(POLICY_LABEL) ?? '';
  const bound = `pod ${shownName(pod.namespace)}/${shownName(pod.name)} has policy ${shownName(policy)} associated`;
  switch (error.problem) {
    case 'unknown':
      return `${bound}, but the policy does not exist`;
    case 'invalid':
      return `${bound}, but no policy can have that name`;
    case 'failed':
      return `${bound}, but the policy could not be loaded: ${error.message}`;
  }
}

function namesOf(pod: NriPodSandbox, container: NriContainer) {
  return {
    namespace: pod.namespace,
    podName: pod.name,
    containerName: container.name,
    containerId: container.id,
  };
}
