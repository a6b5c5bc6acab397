import { ACKNOWLEDGE_ANNOTATION_PREFIX } from './keys.ts';
import { MAX_VIOLATION_RECORDS } from './limits.ts';
import { statusMessage } from './status-message.ts';
import { withinBytes } from './violation-status.ts';
import type { AcknowledgedViolation, WorkloadPolicyStatus } from './workload-policy-status.ts';

/** A user's word that a violation is known, given as an annotation of its policy. */
export interface AcknowledgementRequest {
  readonly annotation: string;
  readonly id: number;
  readonly reason: string;
}

const ID = /^\d{1,19}$/;

/** The acknowledgements that annotations ask for. Those whose name ends in no number are none of ours. */
export function acknowledgementRequests(
  annotations: Readonly<Record<string, string>> = {},
): AcknowledgementRequest[] {
  return Object.entries(annotations).flatMap(([annotation, reason]) => {
    if (!annotation.startsWith(ACKNOWLEDGE_ANNOTATION_PREFIX)) return [];
    const id = annotation.slice(ACKNOWLEDGE_ANNOTATION_PREFIX.length);
    return ID.test(id) ? [{ annotation, id: Number(id), reason: statusMessage(reason) }] : [];
  });
}

type Lists = Pick<WorkloadPolicyStatus, 'violations' | 'acknowledgedViolations'>;

/** What acknowledging comes to. */
export interface Acknowledged extends Lists {
  /** Moved now. */
  readonly taken: readonly AcknowledgedViolation[];
  /** Requests for which there is no record: neither now nor, as far as is remembered, acknowledged before. */
  readonly unknown: readonly AcknowledgementRequest[];
}

/**
 * Moves the records that are asked for to the acknowledged ones.
 * @param now RFC 3339
 */
export function acknowledge(
  { violations, acknowledgedViolations }: Lists,
  requests: readonly AcknowledgementRequest[],
  now: string,
): Acknowledged {
  const taken: AcknowledgedViolation[] = [];
  const unknown: AcknowledgementRequest[] = [];
  const takenIds = new Set<number>();
  const before = new Set(acknowledgedViolations.map(({ violation }) => violation.id));
  for (const request of requests) {
    const violation = violations.find(({ id }) => id === request.id);
    if (violation !== undefined && !takenIds.has(request.id)) {
      taken.push({ violation, reason: request.reason, acknowledgedAt: now });
      takenIds.add(request.id);
    } else if (violation === undefined && !before.has(request.id)) {
      unknown.push(request);
    }
  }
  if (taken.length === 0) return { violations, acknowledgedViolations, taken, unknown };
  return {
    violations: violations.filter(({ id }) => !takenIds.has(id)),
    acknowledgedViolations: withinBytes(
      [...taken, ...acknowledgedViolations].slice(0, MAX_VIOLATION_RECORDS),
    ),
    taken,
    unknown,
  };
}
