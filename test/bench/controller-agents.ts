import { setTimeout as sleep } from 'node:timers/promises';
import type { CertifiedKey } from '@runtime-enforcer/certs/authority';
import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import type { ReportedViolation } from '@runtime-enforcer/rpc/reported';
import { type SimulatedAgent, simulatedAgent } from '../controller/simulated-agents.ts';

/** What the bench tells a process of agents; each answers with `done`. */
export type AgentsOrder =
  | {
      readonly kind: 'start';
      readonly authority: CertifiedKey;
      readonly from: number;
      readonly to: number;
      readonly port: number;
      readonly policies: readonly string[];
      readonly digest: string;
    }
  | { readonly kind: 'mode'; readonly mode: PolicyMode }
  | { readonly kind: 'violate'; readonly index: number; readonly path: string }
  /** Each agent, in turn, violates its policy. */
  | { readonly kind: 'storm'; readonly perSecond: number; readonly seconds: number };

/** Policies that have pods: each node has one of one of them. */
export const BOUND_POLICIES = 100;

/** The pod of a node, which is of that policy. */
export function boundPodOf(index: number): { readonly policy: number; readonly name: string } {
  return { policy: index % BOUND_POLICIES, name: `bound-${index}` };
}

const TICK_MS = 100;
const STORM_PATHS = 20;
const agents = new Map<number, SimulatedAgent>();
const counts = new Map<string, number>();
let policies: readonly string[] = [];

async function obey(order: AgentsOrder): Promise<void> {
  switch (order.kind) {
    case 'start': {
      const { authority, from, to, port, digest } = order;
      policies = order.policies;
      for (let index = from; index < to; index++) {
        const agent = await simulatedAgent({ authority, index, port });
        for (const key of policies) {
          agent.policies.set(key, { state: 'ready', mode: 'monitor', paths: 1, digest });
        }
        agents.set(index, agent);
        await agent.start();
      }
      return;
    }
    case 'mode':
      for (const agent of agents.values()) {
        for (const [key, state] of agent.policies) agent.policies.set(key, { ...state, mode: order.mode });
        agent.changed();
      }
      return;
    case 'violate': {
      const agent = agents.get(order.index);
      if (agent !== undefined) violate(agent, order.index, order.path);
      return;
    }
    case 'storm': {
      const all = [...agents];
      const perTick = Math.ceil((order.perSecond * TICK_MS) / 1_000);
      let next = 0;
      const end = performance.now() + order.seconds * 1_000;
      for (let due = performance.now(); due < end; due += TICK_MS) {
        for (let count = 0; count < perTick; count++, next++) {
          const [index, agent] = all[next % all.length] ?? [];
          if (agent !== undefined) violate(agent, index ?? 0, `/bin/${next % STORM_PATHS}`);
        }
        await sleep(Math.max(0, due + TICK_MS - performance.now()));
      }
    }
  }
}

function violate(agent: SimulatedAgent, index: number, executablePath: string): void {
  const { policy: which, name: podName } = boundPodOf(index);
  const policy = policies[which] ?? '';
  const [namespace = '', policyName = ''] = policy.split('/');
  const key = `${agent.nodeName} ${policy} ${executablePath}`;
  const occurrences = (counts.get(key) ?? 0) + 1;
  counts.set(key, occurrences);
  const now = new Date().toISOString();
  const violation: ReportedViolation = {
    namespace,
    policyName,
    podName,
    containerName: 'app',
    executablePath,
    nodeName: agent.nodeName,
    action: 'protect',
    reason: 'Unlisted',
    occurrences,
    firstObservedTimestamp: now,
    lastObservedTimestamp: now,
  };
  agent.violations.put(key, violation);
}

if (process.send !== undefined) {
  process.on('message', (order: AgentsOrder) => {
    obey(order).then(
      () => process.send?.('done'),
      (error: unknown) => process.send?.(String(error)),
    );
  });
  process.on('disconnect', () => process.exit(0));
}
