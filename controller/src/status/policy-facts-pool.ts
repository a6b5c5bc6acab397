import type { PolicyFacts } from '@runtime-enforcer/api/node-status';
import type { ReportedPolicy } from '@runtime-enforcer/rpc/reported';

/** Policies of which something is remembered; then the memory begins anew. */
const MAX_POLICIES = 50_000;
/** Different states of one policy: nodes are in two or three at a time. */
const MAX_STATES = 8;

/** One of the equal states that many nodes report of one policy. */
export interface PooledPolicy {
  /** `namespace/name` */
  readonly key: string;
  readonly facts: PolicyFacts;
}

/** One object for equal states, and one text for equal names: each node reports each policy. */
export interface PolicyFactsPool {
  take(key: string, policy: ReportedPolicy): PooledPolicy;
}

interface Pooled {
  readonly key: string;
  /** The one that was asked for last comes first. */
  readonly states: PooledPolicy[];
}

/** See {@link PolicyFactsPool}. */
export function policyFactsPool(): PolicyFactsPool {
  let pool = new Map<string, Pooled>();
  return {
    take(key, policy) {
      let pooled = pool.get(key);
      if (pooled === undefined) {
        if (pool.size >= MAX_POLICIES) pool = new Map();
        pooled = { key, states: [] };
        pool.set(key, pooled);
      }
      const { states } = pooled;
      const [first] = states;
      if (first !== undefined && isSame(first.facts, policy)) return first;
      const at = states.findIndex(({ facts }) => isSame(facts, policy));
      const [known] = at < 0 ? [] : states.splice(at, 1);
      const { state, mode, message, digest } = policy;
      const taken = known ?? { key: pooled.key, facts: { state, mode, message, digest } };
      states.unshift(taken);
      if (states.length > MAX_STATES) states.pop();
      return taken;
    },
  };
}

function isSame(facts: PolicyFacts, policy: ReportedPolicy): boolean {
  return (
    facts.state === policy.state &&
    facts.mode === policy.mode &&
    facts.digest === policy.digest &&
    facts.message === policy.message
  );
}
