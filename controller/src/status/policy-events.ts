import { API_VERSION, WORKLOAD_POLICY_KIND } from '@runtime-enforcer/api/keys';
import type { StatusOutcome } from '@runtime-enforcer/api/policy-status';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import type { ViolationRecord } from '@runtime-enforcer/api/violation';
import type {
  AcknowledgedViolation,
  WorkloadPolicyStatus,
} from '@runtime-enforcer/api/workload-policy-status';
import type { EventRecorder } from '@runtime-enforcer/kube/event-recorder';
import type { EventNote } from '@runtime-enforcer/kube/event-series';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { ExportedEvent } from '@runtime-enforcer/telemetry/log-export';

/** Name of the instrumentation scope of {@link acknowledgedEvent}. */
export const STATUS_SCOPE = 'workload-policy-status';

/** Tells on the policy what is new in its status: at most one Event of each reason. */
export function tellPolicy(
  events: EventRecorder,
  { metadata }: KubeObject,
  before: WorkloadPolicyStatus,
  { status, added, acknowledged, unknownRequests }: StatusOutcome,
): void {
  const { name, namespace, uid } = metadata;
  const subject = {
    apiVersion: API_VERSION,
    kind: WORKLOAD_POLICY_KIND,
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
  };
  const tell = (type: EventNote['type'], reason: string, message: string): void =>
    events.record({ subject, type, reason, message: escapeUnprintable(message) });

  const known = new Set([
    ...before.violations.map(kindOf),
    ...before.acknowledgedViolations.map(({ violation }) => kindOf(violation)),
  ]);
  const firsts = new Map(added.map((record) => [kindOf(record), record]));
  for (const kind of known) firsts.delete(kind);
  const [first] = firsts.values();
  if (first !== undefined) {
    const verb = first.action === 'protect' ? 'was denied' : 'was not on the list';
    const more = firsts.size > 1 ? `, and ${firsts.size - 1} more that had not been seen before` : '';
    tell(
      'Warning',
      'PolicyViolation',
      `${first.executablePath || 'an executable'} ${verb} in container ${first.containerName} of pod ${first.podName}${more}`,
    );
  }
  if (status.phase !== undefined && status.phase !== before.phase) {
    const ready = status.conditions.find(({ type }) => type === 'Ready');
    tell(status.phase === 'Failed' ? 'Warning' : 'Normal', `Policy${status.phase}`, ready?.message ?? '');
  }
  const [acknowledgement] = acknowledged;
  if (acknowledgement !== undefined) {
    const more = acknowledged.length > 1 ? `, and ${acknowledged.length - 1} more` : '';
    const { violation, reason } = acknowledgement;
    tell(
      'Normal',
      'ViolationAcknowledged',
      `violation ${violation.id} (${violation.executablePath})${more}: ${reason}`,
    );
  }
  const [unknown] = unknownRequests;
  if (unknown !== undefined) {
    tell(
      'Warning',
      'NoSuchViolation',
      `${unknown.annotation}: the status has no violation with this id; look it up anew`,
    );
  }
}

/** An acknowledgement as an event for a collector, with the public reference's names. */
export function acknowledgedEvent(
  { metadata }: KubeObject,
  { violation, reason }: AcknowledgedViolation,
): ExportedEvent {
  const { workloadName, workloadKind } = violation;
  return {
    name: 'policy_violation_acknowledged',
    severity: 'INFO',
    attributes: {
      id: violation.id,
      lastObservedTimestamp: new Date(violation.lastObservedTimestamp).toISOString(),
      reason,
      'policy.name': metadata.name,
      'k8s.namespace.name': metadata.namespace ?? '',
      'k8s.pod.name': violation.podName,
      'container.name': violation.containerName,
      'proc.exepath': violation.executablePath,
      'node.name': violation.nodeName,
      action: violation.action,
      ...(workloadName !== undefined && { 'workload.name': workloadName }),
      ...(workloadKind !== undefined && { 'workload.kind': workloadKind }),
    },
  };
}

/** What a user takes for the same: whichever replica it was. */
function kindOf({ containerName, executablePath, action }: ViolationRecord): string {
  return JSON.stringify([containerName, executablePath, action]);
}
