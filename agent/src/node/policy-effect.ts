import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ContainerBinder } from '../containers/container-binder.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import { policyKey } from '../policies/policy-key.ts';
import type { LoadedPolicies } from '../policies/policy-table.ts';

/** Brings policies, and what changes of them, into the kernel and to the containers that they concern. */
export interface PolicyEffect {
  /**
   * Resolves when the policy decides for its containers, or its state says why not. Never rejects.
   * @param origin fields for the log that tell where the policy comes from
   */
  apply(policy: WorkloadPolicy, origin: object): Promise<void>;
  /** Takes note of a policy that cannot be read; what was loaded of it before stays in force. Never rejects. */
  refuse(key: string, message: string, origin: object): Promise<void>;
  /** Forgets a policy; containers in use keep its last list. Never rejects. */
  remove(key: string): Promise<void>;
}

export function createPolicyEffect(parts: {
  table: LoadedPolicies;
  binder: Pick<ContainerBinder, 'policyChanged' | 'containers'>;
  /** A container that ran unbound until now is bound. */
  onBoundLate: (container: BoundContainer) => void;
  log: Logger;
  counters: AgentCounters;
}): PolicyEffect {
  const { table, binder, onBoundLate, log, counters } = parts;

  const bindAgain = async (key: string): Promise<void> => {
    const waiting = new Set<string>();
    for (const container of binder.containers()) {
      if (container.policy === key && container.state === 'waiting') waiting.add(container.containerId);
    }
    const bound = await binder.policyChanged(key);
    for (const container of bound) {
      if (!waiting.has(container.containerId)) continue;
      const { namespace, podName, containerName, state } = container;
      log.info({ policy: key, namespace, podName, containerName, state }, 'waiting container bound');
      onBoundLate(container);
    }
  };

  const survive = async (policy: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      counters.add('policies_failed');
      log.error({ err: error, policy }, 'policy could not be changed');
    }
  };

  return {
    apply(policy, origin) {
      const key = policyKey(policy);
      return survive(key, async () => {
        const { state, mode, message, paths, digest } = await table.apply(policy);
        const fields = { policy: key, mode, paths, digest, ...origin };
        if (state === 'failed') {
          counters.add('policies_failed');
          log.error({ ...fields, problem: message }, 'policy failed');
        }
        await bindAgain(key);
        if (state !== 'failed') log.info(fields, 'policy loaded');
      });
    },
    refuse: (key, message, origin) =>
      survive(key, async () => {
        const { message: problem } = await table.refuse(key, message);
        counters.add('policies_failed');
        log.error({ policy: key, ...origin, problem }, 'policy failed');
      }),
    remove: (key) =>
      survive(key, async () => {
        await table.remove(key);
        await bindAgain(key);
        const retained = table.state(key) !== undefined;
        log.info({ policy: key, retained }, 'policy removed');
      }),
  };
}
