import type { ExportedEvent } from '@runtime-enforcer/telemetry/log-export';
import type { NodeViolation } from './node-violation.ts';

/** Name of the instrumentation scope, and of the event. */
export const VIOLATION_SCOPE = 'violation-reporter';
const VIOLATION_EVENT = 'policy_violation';

/**
 * A violation as an event for a collector. The names of the attributes up to `action` are those that the public
 * reference sends; what is not known is left out.
 * @param occurrences how often it has occurred since the event before about the same
 */
export function violationEvent(violation: NodeViolation, occurrences: number): ExportedEvent {
  const { reason, origin, workloadName, workloadKind, pid, uid, parentName, image, overflow } = violation;
  return {
    name: VIOLATION_EVENT,
    severity: 'WARN',
    attributes: {
      'policy.name': violation.policyName,
      'k8s.namespace.name': violation.namespace,
      'k8s.pod.name': violation.podName,
      'container.name': violation.containerName,
      'proc.exepath': violation.executablePath,
      'node.name': violation.nodeName,
      action: violation.action,
      ...(workloadName !== undefined && { 'workload.name': workloadName }),
      ...(workloadKind !== undefined && { 'workload.kind': workloadKind }),
      ...(pid !== undefined && { 'process.pid': pid }),
      ...(uid !== undefined && { 'user.id': uid }),
      ...(parentName !== undefined && { 'process.parent.name': parentName }),
      'container.id': violation.containerId,
      ...(image !== undefined && { 'container.image.name': image }),
      ...(reason !== undefined && { reason }),
      ...(origin !== undefined && { origin }),
      ...(overflow === true && { overflow }),
      count: occurrences,
    },
  };
}
