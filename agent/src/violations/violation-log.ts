import type { ViolationAction } from '@runtime-enforcer/api/violation';
import type { CumulativeLog, KeptLog } from './cumulative-log.ts';
import { nodeViolationKey, recoveredLine, type NodeViolation } from './node-violation.ts';
import type { JournalLine, LineContainer, OverflowLine, ViolationLine } from './violation-line.ts';

/** Puts what the violation journal writes into the log of the node. */
export interface ViolationLog {
  /** What readers get. */
  readonly log: CumulativeLog<NodeViolation>;
  /** To be given to the violation journal as its `write`. */
  write(line: JournalLine): void;
  /** To be given to it as its `onEnded`: nothing more comes from the container. */
  ended(containerId: string): void;
  /** Of living containers, for the violation journal to go on from. */
  recovered(): JournalLine[];
}

/**
 * @param options.onChange called with each violation that is new or has occurred again, and how often it has since the
 * last call. What occurred more often under the agent before counts as told.
 */
export function createViolationLog(options: {
  log: KeptLog<NodeViolation>;
  onChange?: (violation: NodeViolation, occurrences: number) => void;
}): ViolationLog {
  const { log, onChange } = options;
  const containers = new Map<string, { readonly keys: Set<string>; action: ViolationAction }>();

  const containerOf = (containerId: string): { readonly keys: Set<string>; action: ViolationAction } => {
    let known = containers.get(containerId);
    if (known === undefined) {
      known = { keys: new Set(), action: 'monitor' };
      containers.set(containerId, known);
    }
    return known;
  };
  for (const [key, { containerId, action }] of log.values()) {
    const known = containerOf(containerId);
    known.keys.add(key);
    known.action = action;
  }

  return {
    log,
    write(line) {
      const known = containerOf(line.containerId);
      if (line.event === 'policy_violation') known.action = line.action;
      const violation =
        line.event === 'policy_violation' ? violationOf(line) : overflowOf(line, known.action);
      const key = nodeViolationKey(violation);
      const before = log.get(key);
      // Of the overflow, some may have got a record of their own meanwhile: what was told stays told.
      const added = violation.occurrences - (before?.occurrences ?? 0);
      if (added < 0) return;
      const since = before === undefined ? undefined : earliest(before, violation);
      const value = since === undefined ? violation : { ...violation, firstObservedTimestamp: since };
      known.keys.add(key);
      log.put(key, value);
      if (added > 0) onChange?.(value, added);
    },
    ended(containerId) {
      for (const key of containers.get(containerId)?.keys ?? []) log.remove(key);
      containers.delete(containerId);
    },
    recovered: () => [...log.values()].map(([, value]) => recoveredLine(value, value.lastObservedTimestamp)),
  };
}

function violationOf(line: ViolationLine): NodeViolation {
  const { executablePath, action, origin, occurrences, firstObservedTimestamp, lastObservedTimestamp } = line;
  const { reason, pid, uid, parentName, recordKey, recordCount } = line;
  return {
    ...lineContainerOf(line),
    ...{ executablePath, action, origin, occurrences, firstObservedTimestamp, lastObservedTimestamp },
    ...(reason !== undefined && { reason }),
    ...(pid !== undefined && { pid }),
    ...(uid !== undefined && { uid }),
    ...(parentName !== undefined && { parentName }),
    ...(recordKey !== undefined && { recordKey }),
    ...(recordCount !== undefined && { recordCount }),
  };
}

function overflowOf(line: OverflowLine, action: ViolationAction): NodeViolation {
  const { occurrences, time } = line;
  return {
    ...lineContainerOf(line),
    ...{ executablePath: '', action, overflow: true, occurrences },
    firstObservedTimestamp: time,
    lastObservedTimestamp: time,
  };
}

function lineContainerOf(line: LineContainer): LineContainer {
  const { namespace, podName, containerName, containerId, image, workloadKind, workloadName } = line;
  const { nodeName, policyName } = line;
  return {
    ...{ namespace, podName, containerName, containerId, image, workloadKind, workloadName },
    ...{ nodeName, policyName },
  };
}

function earliest(before: NodeViolation, now: NodeViolation): string {
  const [one, other] = [before.firstObservedTimestamp, now.firstObservedTimestamp];
  return Date.parse(one) <= Date.parse(other) ? one : other;
}
