import type { PolicyFacts } from '@runtime-enforcer/api/node-status';
import type { AgentPod } from './agent-pod.ts';

/** Policies of one agent; more are none of ours. */
export const MAX_POLICIES_OF_AGENT = 50_000;

/** What all agents say of each policy. By policy, since whoever judges one asks every agent about it. */
export interface PolicyReports {
  /** @returns whether the agent said something else before, or nothing */
  set(agent: AgentPod, policy: string, facts: PolicyFacts): boolean;
  delete(agent: AgentPod, policy: string): void;
  /** All that an agent has said, but about `kept`. */
  forget(agent: AgentPod, kept?: ReadonlySet<string>): void;
  of(policy: string): ReadonlyMap<AgentPod, PolicyFacts>;
}

const NONE: ReadonlyMap<AgentPod, PolicyFacts> = new Map();

/** See {@link PolicyReports}. */
export function policyReports(): PolicyReports {
  const byPolicy = new Map<string, Map<AgentPod, PolicyFacts>>();
  const counts = new Map<AgentPod, number>();

  function remove(agent: AgentPod, policy: string): void {
    const reports = byPolicy.get(policy);
    if (reports?.delete(agent) !== true) return;
    if (reports.size === 0) byPolicy.delete(policy);
    counts.set(agent, (counts.get(agent) ?? 0) - 1);
  }

  return {
    set(agent, policy, facts) {
      let reports = byPolicy.get(policy);
      const before = reports?.get(agent);
      if (before === facts) return false;
      if (before === undefined) {
        const count = counts.get(agent) ?? 0;
        if (count >= MAX_POLICIES_OF_AGENT) return false;
        counts.set(agent, count + 1);
      }
      if (reports === undefined) {
        reports = new Map();
        byPolicy.set(policy, reports);
      }
      reports.set(agent, facts);
      return true;
    },
    delete: remove,
    forget(agent, kept) {
      for (const policy of byPolicy.keys()) if (kept?.has(policy) !== true) remove(agent, policy);
      if (kept === undefined) counts.delete(agent);
    },
    of: (policy) => byPolicy.get(policy) ?? NONE,
  };
}
