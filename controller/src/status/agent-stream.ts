import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import type { AgentCallError, AgentCallProblem } from '@runtime-enforcer/rpc/agent-call-error';
import type { AgentClient } from '@runtime-enforcer/rpc/agent-client';
import type {
  NodeReport,
  NodeState,
  ReportedPage,
  ReportedPolicies,
  ReportedViolation,
} from '@runtime-enforcer/rpc/reported';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import { acknowledgedPlace } from './acknowledged-place.ts';
import type { AgentPod } from './agent-pod.ts';
import { MAX_POLICIES_OF_AGENT, type PolicyReports } from './policy-reports.ts';

/** A connection that breaks comes back; what the node said last counts so long. */
const HOLD_MS = 5_000;
/** Entries of one agent that wait to be stored; it is read on when there are fewer. */
const MAX_OUTSTANDING = 5_000;
const PAUSE_MS = 200;

/** What becomes of an entry that was read. `settled` is to be called when it is stored, or never will be. */
export interface EntryIntake {
  violation(entry: ReadEntry<ReportedViolation>, settled: () => void): void;
  observation(entry: ReadEntry<NodeObservation>, settled: () => void): void;
  /** Entries that broke the bounds of `api/`. */
  refused(nodeName: string, count: number, reasons: readonly string[]): void;
}

export interface ReadEntry<T> {
  readonly nodeName: string;
  readonly incarnation: string;
  readonly sequence: number;
  readonly value: T;
  readonly previousCount: number;
}

/** What one agent says, read as long as its pod is there. */
export interface AgentStream {
  readonly pod: AgentPod;
  start(): void;
  stop(): Promise<void>;
  /** Whether the node is known: all its policies have come, and its connection is not lost for long. */
  isReporting(): boolean;
  /** Whether it is reporting a node that enforces all that it is told, as well as nodes can. */
  isInOrder(): boolean;
  /** Why it is not reporting, in words that stay the same as long as the reason does. */
  silence(): string;
  /** Whether it was found not to answer. */
  hasFailed(): boolean;
  /** Known where it is reporting. */
  readonly node: NodeState | undefined;
  /** Tells the agent what is stored by now. Never rejects. */
  acknowledge(): Promise<void>;
}

export interface AgentStreamOptions {
  readonly pod: AgentPod;
  readonly client: AgentClient;
  readonly intake: EntryIntake;
  /** Policies about which the node says something else than before; `all`: about itself. */
  readonly onChange: (policies: Iterable<string> | 'all') => void;
  /** Takes what the agent says of policies, under its pod. */
  readonly reports: PolicyReports;
  readonly log: Logger;
}

const PROBLEMS: Readonly<Record<AgentCallProblem, string>> = {
  unreachable: 'cannot be reached',
  deadline: 'does not answer',
  forbidden: 'does not let the controller ask',
  cancelled: 'is not asked any more',
  incompatible: 'speaks another version',
  failed: 'failed to answer',
};

/** See {@link AgentStream}. */
export function agentStream(options: AgentStreamOptions): AgentStream {
  const { pod, client, intake, onChange, reports, log } = options;
  const { nodeName } = pod;
  const stopping = new AbortController();
  /** Policies in the listing that is under way. */
  let listed: Set<string> | undefined;
  let isListed = false;
  let node: NodeState | undefined;
  let trouble: AgentCallError | undefined;
  let lostTimer: NodeJS.Timeout | undefined;
  let isLost = false;
  let running: Promise<void> = Promise.resolve();
  const places = { violations: acknowledgedPlace(''), observations: acknowledgedPlace('') };
  const acknowledged = { violations: 0, observations: 0 };
  /** Entries that wait to be stored, of all incarnations that the agent has named: it may name many. */
  let outstanding = 0;
  let isAcknowledging = false;

  /** An agent of another node must not speak for this one. */
  const isImpostor = (): boolean => node !== undefined && node.nodeName !== nodeName;
  const isReporting = (): boolean => isListed && node !== undefined && !isLost && !isImpostor();

  function isInOrder(): boolean {
    return isReporting() && node?.attached === true && node.override === 'none' && node.degraded === '';
  }

  function silence(): string {
    if (isImpostor()) return `the agent ${pod.name} says that it is on another node`;
    if (trouble !== undefined) return `the agent ${pod.name} ${PROBLEMS[trouble.problem]}`;
    return `the agent ${pod.name} has not reported yet`;
  }

  function takePolicies(page: ReportedPolicies): void {
    if (page.resync) listed = new Set();
    const changed: string[] = [];
    for (const [key, policy] of page.policies) {
      if (reports.set(pod, key, policy)) changed.push(key);
      if (listed !== undefined && listed.size < MAX_POLICIES_OF_AGENT) listed.add(key);
    }
    for (const key of page.removed) {
      reports.delete(pod, key);
      listed?.delete(key);
      changed.push(key);
    }
    if (listed === undefined) onChange(changed);
    if (page.more || listed === undefined) return;
    reports.forget(pod, listed);
    listed = undefined;
    isListed = true;
    onChange('all');
  }

  function takeNode(next: NodeState): void {
    const before = node;
    node = next;
    const isSame =
      before?.nodeName === next.nodeName &&
      before.attached === next.attached &&
      before.override === next.override &&
      before.degraded === next.degraded;
    if (!isSame) onChange('all');
  }

  function counted(settled: () => void): () => void {
    outstanding++;
    let isOpen = true;
    return () => {
      if (isOpen) outstanding--;
      isOpen = false;
      settled();
    };
  }

  function takePage<T>(
    part: 'violations' | 'observations',
    page: ReportedPage<T>,
    take: (entry: ReadEntry<T>, settled: () => void) => void,
  ): void {
    const { incarnation, sequence: end } = page.cursor;
    if (places[part].cursor.incarnation !== incarnation) {
      places[part] = acknowledgedPlace(incarnation);
      acknowledged[part] = 0;
    }
    const place = places[part];
    if (page.refused > 0) intake.refused(nodeName, page.refused, page.refusals);
    for (const { sequence, value, previousCount } of page.entries) {
      take({ nodeName, incarnation, sequence, value, previousCount }, counted(place.read(sequence)));
    }
    place.read(end)();
  }

  function take(report: NodeReport): void {
    if (report.node !== undefined) takeNode(report.node);
    if (isImpostor()) return;
    if (report.policies !== undefined) takePolicies(report.policies);
    if (report.violations !== undefined) {
      takePage('violations', report.violations, (entry, settled) => intake.violation(entry, settled));
    }
    if (report.observations !== undefined) {
      takePage('observations', report.observations, (entry, settled) => intake.observation(entry, settled));
    }
  }

  function found(): void {
    clearTimeout(lostTimer);
    lostTimer = undefined;
    const wasLost = isLost;
    isLost = false;
    if (trouble !== undefined) log.info({ node: nodeName, pod: pod.name }, 'the agent reports again');
    trouble = undefined;
    if (wasLost) onChange('all');
  }

  function lost(error: AgentCallError, failures: number): void {
    if (failures === 1) log.warn({ err: error, node: nodeName, pod: pod.name }, 'the agent does not report');
    const isOther = trouble?.problem !== error.problem;
    trouble = error;
    if (!isListed) isLost = true;
    if (isLost && isOther) onChange('all');
    if (isLost || lostTimer !== undefined) return;
    lostTimer = setTimeout(() => {
      isLost = true;
      onChange('all');
    }, HOLD_MS);
    lostTimer.unref();
  }

  async function run(): Promise<void> {
    for await (const event of client.watch({ signal: stopping.signal })) {
      if (event.kind === 'lost') {
        lost(event.error, event.failures);
        continue;
      }
      take(event.report);
      found();
      while (outstanding > MAX_OUTSTANDING && !stopping.signal.aborted) {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }

  return {
    pod,
    start() {
      running = run().catch((err: unknown) => {
        log.error({ err, node: nodeName, pod: pod.name }, 'the agent is not read any more');
        isLost = true;
        onChange('all');
      });
    },
    async stop() {
      stopping.abort();
      clearTimeout(lostTimer);
      client.close();
      await running;
      reports.forget(pod);
    },
    isReporting,
    isInOrder,
    hasFailed: () => trouble !== undefined || isImpostor(),
    silence,
    get node() {
      return node;
    },
    async acknowledge() {
      const { violations, observations } = places;
      const isNew = {
        violations: violations.cursor.sequence > acknowledged.violations,
        observations: observations.cursor.sequence > acknowledged.observations,
      };
      if (isLost || isAcknowledging || !(isNew.violations || isNew.observations)) return;
      isAcknowledging = true;
      const cursors = { violations: violations.cursor, observations: observations.cursor };
      try {
        await client.acknowledge({
          ...(isNew.violations && { violations: cursors.violations }),
          ...(isNew.observations && { observations: cursors.observations }),
        });
        if (places.violations === violations) acknowledged.violations = cursors.violations.sequence;
        if (places.observations === observations) acknowledged.observations = cursors.observations.sequence;
      } catch (err) {
        log.debug({ err, node: nodeName }, 'what is stored is told to the agent later');
      } finally {
        isAcknowledging = false;
      }
    },
  };
}
