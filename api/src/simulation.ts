import { executablePathBytes, parseExecutablePath } from './executable-path.ts';
import { type Decision, decide } from './matcher.ts';
import type { ViolationReason, ViolationRecord } from './violation.ts';
import type { WorkloadPolicySpec } from './workload-policy.ts';
import type { WorkloadPolicyProposal } from './workload-policy-proposal.ts';

/** An exec that happened: what a policy is tried on. */
export interface RecordedExec {
  readonly containerName: string;
  /** As displayed; also what no list can hold, such as a deleted file. */
  readonly executablePath: string;
  readonly occurrences: number;
  /** Why it was a violation, if it was one: some stay violations whatever is on the list. */
  readonly reason?: ViolationReason;
}

export interface SimulatedExec extends RecordedExec {
  readonly decision: Decision;
}

export interface Simulation {
  /** What would be violations first, each by container and path. */
  readonly execs: readonly SimulatedExec[];
  /** Distinct execs, and how often they happened. */
  readonly passing: { readonly execs: number; readonly occurrences: number };
  readonly violating: { readonly execs: number; readonly occurrences: number };
}

/** Reasons that no list decides. */
const BEYOND_LISTS: ReadonlySet<ViolationReason> = new Set([
  'Unresolved',
  'TooLong',
  'Unlinked',
  'Memfd',
  'ForeignMount',
  'NoScratch',
]);

/** What a policy would have made of recorded execs. Equal ones are counted together. */
export function simulate(
  policy: Pick<WorkloadPolicySpec, 'mode' | 'unlistedContainers' | 'rulesByContainer'>,
  recorded: Iterable<RecordedExec>,
): Simulation {
  const merged = new Map<string, RecordedExec>();
  for (const exec of recorded) {
    const key = JSON.stringify([exec.containerName, exec.executablePath, exec.reason]);
    const known = merged.get(key);
    merged.set(key, known === undefined ? exec : add(known, exec));
  }
  const execs = [...merged.values()]
    .map((exec): SimulatedExec => ({ ...exec, decision: decideRecorded(policy, exec) }))
    .toSorted(byOutcomeAndName);
  const total = (wanted: boolean) => {
    const counted = execs.filter(({ decision }) => (decision.outcome === 'violation') === wanted);
    return {
      execs: counted.length,
      occurrences: counted.reduce((sum, { occurrences }) => sum + occurrences, 0),
    };
  };
  return { execs, passing: total(false), violating: total(true) };
}

/** The execs that a policy's violations tell of. */
export function execsOfViolations(violations: readonly ViolationRecord[]): RecordedExec[] {
  return violations.map(({ containerName, executablePath, occurrences, reason }) => ({
    containerName,
    executablePath,
    occurrences,
    ...(reason !== undefined && { reason }),
  }));
}

/** The execs that a proposal was learned from; each at least once, also where no count is known. */
export function execsOfProposal({ spec, status }: WorkloadPolicyProposal): RecordedExec[] {
  const counts = new Map(
    status?.observations.map(({ containerName, executablePath, count }) => [
      `${containerName} ${executablePath}`,
      count,
    ]),
  );
  return [...spec.rulesByContainer].flatMap(([containerName, { executables }]) =>
    executables.allowed.map((executablePath) => ({
      containerName,
      executablePath,
      occurrences: counts.get(`${containerName} ${executablePath}`) ?? 1,
    })),
  );
}

function decideRecorded(policy: Parameters<typeof simulate>[0], exec: RecordedExec): Decision {
  const { containerName: container, executablePath, reason } = exec;
  const path = parseExecutablePath(executablePath);
  const isBeyond = reason !== undefined && BEYOND_LISTS.has(reason);
  // Without a path that a list can hold, the matcher still says what the container's rules make of it.
  const bytes = path.ok && !isBeyond ? executablePathBytes(path.value) : new Uint8Array();
  const decision = decide(policy, {
    container,
    path: bytes,
    kind: 'file',
    mountNamespace: reason === 'OtherMountNamespace' ? 'other' : 'own',
  });
  return decision.outcome === 'violation' && isBeyond ? { ...decision, reason } : decision;
}

function add(known: RecordedExec, repeat: RecordedExec): RecordedExec {
  const occurrences = Math.min(known.occurrences + repeat.occurrences, Number.MAX_SAFE_INTEGER);
  return { ...known, occurrences };
}

function byOutcomeAndName(one: SimulatedExec, other: SimulatedExec): number {
  const rank = ({ decision }: SimulatedExec) => (decision.outcome === 'violation' ? 0 : 1);
  return (
    rank(one) - rank(other) ||
    compare(one.containerName, other.containerName) ||
    compare(one.executablePath, other.executablePath)
  );
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
