import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import type { AgentClient } from '@runtime-enforcer/rpc/agent-client';
import { AgentCallError } from '@runtime-enforcer/rpc/agent-call-error';
import type {
  Cursor,
  NodeReport,
  NodeState,
  ReportedEntry,
  ReportedPolicy,
  ReportedViolation,
} from '@runtime-enforcer/rpc/reported';

/** An agent in this process, which keeps what it tells until it is acknowledged. For tests. */
export interface FakeAgent {
  readonly connect: () => AgentClient;
  /** Adds occurrences to a violation. */
  violate(violation: Omit<ReportedViolation, 'occurrences'>, times: number): void;
  setPolicy(key: string, policy: Partial<ReportedPolicy> | undefined): void;
  setNode(state: Partial<NodeState>): void;
  /** Begins another journal. What was not read is lost. */
  startAnew(): void;
  /** Breaks every connection, and lets none succeed until told otherwise. */
  setReachable(isReachable: boolean): void;
  readonly acknowledged: Cursor;
  /** Of the last entry. */
  readonly end: Cursor;
}

export function fakeAgent(nodeName: string): FakeAgent {
  let life = 0;
  let entries: ReportedEntry<ReportedViolation>[] = [];
  let counts = new Map<string, number>();
  let acknowledged: Cursor = { incarnation: '', sequence: 0 };
  let isReachable = true;
  let node: NodeState = {
    nodeName,
    agentVersion: '0',
    startedAt: '2026-01-31T12:00:00.000Z',
    attachment: 'lsm',
    kernel: '6.12',
    attached: true,
    degraded: '',
    override: 'none',
    runtimeConnected: true,
    policiesLoaded: true,
  };
  const policies = new Map<string, ReportedPolicy>();
  const wakeUps = new Set<() => void>();
  const incarnation = (): string => `${nodeName}-${life}`;
  const wake = (): void => {
    for (const each of wakeUps) each();
  };
  const endOf = (): Cursor => ({ incarnation: incarnation(), sequence: entries.length });

  async function* watch(signal: AbortSignal) {
    let at: Cursor = { incarnation: '', sequence: 0 };
    let shownPolicies = '';
    while (!signal.aborted) {
      if (!isReachable) {
        const error = new AgentCallError('unreachable', `agent ${nodeName}: away`);
        yield { kind: 'lost', error, failures: 1, retryMs: 1 } as const;
      } else {
        const isOther = at.incarnation !== incarnation();
        const from = isOther ? 0 : at.sequence;
        const page = entries.slice(from, from + 3);
        const shown = JSON.stringify([node, ...policies]);
        const report: NodeReport = {
          ...(shown !== shownPolicies && {
            node,
            policies: {
              cursor: { incarnation: 'p', sequence: 1 },
              resync: true,
              policies: new Map(policies),
              removed: [],
              more: false,
            },
          }),
          ...((page.length > 0 || isOther) && {
            violations: {
              cursor: { incarnation: incarnation(), sequence: from + page.length },
              resync: isOther,
              entries: page,
              more: false,
              refused: 0,
              refusals: [],
            },
          }),
        };
        shownPolicies = shown;
        at = { incarnation: incarnation(), sequence: from + page.length };
        if (Object.keys(report).length > 0) yield { kind: 'report', report } as const;
        if (at.sequence < entries.length) continue;
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, 20);
        wakeUps.add(done);
        signal.addEventListener('abort', done);
        function done(): void {
          clearTimeout(timer);
          wakeUps.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        }
      });
    }
  }

  return {
    connect: () => ({
      watch: ({ signal }) => watch(signal),
      acknowledge({ violations }) {
        if (violations?.incarnation === incarnation()) acknowledged = violations;
        return Promise.resolve({ violationsAccepted: true, observationsAccepted: true });
      },
      listPoliciesStatus: () => Promise.reject(new Error('not asked for')),
      listPods: () => {
        throw new Error('not asked for');
      },
      listBindings: () => {
        throw new Error('not asked for');
      },
      isServing: () => Promise.resolve(true),
      close: () => undefined,
    }),
    violate(violation, times) {
      const { podName, executablePath, policyName } = violation;
      const key = JSON.stringify([podName, executablePath, policyName]);
      const previousCount = counts.get(key) ?? 0;
      counts.set(key, previousCount + times);
      const value = { ...violation, occurrences: previousCount + times };
      entries.push({ sequence: entries.length + 1, value, previousCount });
      wake();
    },
    setPolicy(key, policy) {
      const mode: PolicyMode = 'protect';
      if (policy === undefined) policies.delete(key);
      else policies.set(key, { state: 'ready', mode, message: '', digest: '', paths: 0, ...policy });
      wake();
    },
    setNode(state) {
      node = { ...node, ...state };
      wake();
    },
    startAnew() {
      life++;
      entries = [];
      counts = new Map();
      wake();
    },
    setReachable(next) {
      isReachable = next;
      wake();
    },
    get acknowledged() {
      return acknowledged;
    },
    get end() {
      return endOf();
    },
  };
}
