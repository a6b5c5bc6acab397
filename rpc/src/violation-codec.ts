import { EXEC_ORIGINS } from '@runtime-enforcer/api/exec-origin';
import { parseWith } from '@runtime-enforcer/api/schema';
import { VIOLATION_REASONS, violation } from '@runtime-enforcer/api/violation';
import type { Parsed } from '@runtime-enforcer/api/field-error';
import type { ReportedViolation } from './reported.ts';
import {
  timestampFromWire,
  timestampToWire,
  wireText,
  type WireLong,
  type WireTimestamp,
} from './wire-values.ts';

/** `ViolationRecord` of proto/agent.proto. */
export interface WireViolation {
  readonly timestamp: WireTimestamp | null;
  readonly podName: string;
  readonly containerName: string;
  readonly executablePath: string;
  readonly nodeName: string;
  readonly action: string;
  readonly policyName: string;
  readonly workloadName: string;
  readonly workloadKind: string;
  readonly occurrences: WireLong;
  readonly firstObserved: WireTimestamp | null;
  readonly reason: string;
  readonly origin: string;
  readonly pid: number;
  readonly uid?: number;
  readonly parentName: string;
  readonly containerId: string;
  readonly image: string;
  readonly overflow: boolean;
}

export function violationToWire(reported: ReportedViolation): WireViolation {
  const { namespace, policyName, uid } = reported;
  return {
    timestamp: timestampToWire(reported.lastObservedTimestamp),
    podName: wireText(reported.podName),
    containerName: wireText(reported.containerName),
    executablePath: wireText(reported.executablePath),
    nodeName: wireText(reported.nodeName),
    action: reported.action,
    policyName: wireText(`${namespace}/${policyName}`),
    workloadName: wireText(reported.workloadName ?? ''),
    workloadKind: wireText(reported.workloadKind ?? ''),
    occurrences: reported.occurrences,
    firstObserved: timestampToWire(reported.firstObservedTimestamp),
    reason: reported.reason ?? '',
    origin: reported.origin ?? '',
    pid: reported.pid ?? 0,
    ...(uid === undefined ? {} : { uid }),
    parentName: wireText(reported.parentName ?? ''),
    containerId: wireText(reported.containerId ?? ''),
    image: wireText(reported.image ?? ''),
    overflow: reported.overflow ?? false,
  };
}

/**
 * What an agent sent, held to the bounds that `api/` sets for a violation. A reason or an origin that this version
 * does not know is left out: a newer agent's violation still counts.
 */
export function violationFromWire(wire: WireViolation): Parsed<ReportedViolation> {
  const separator = wire.policyName.indexOf('/');
  const checked = parseWith(violation, {
    namespace: wire.policyName.slice(0, Math.max(separator, 0)),
    policyName: wire.policyName.slice(separator + 1),
    podName: wire.podName,
    containerName: wire.containerName,
    executablePath: wire.executablePath,
    nodeName: wire.nodeName,
    action: wire.action,
    occurrences: Number(wire.occurrences),
    firstObservedTimestamp: timestampFromWire(wire.firstObserved),
    lastObservedTimestamp: timestampFromWire(wire.timestamp),
    ...known('reason', wire.reason, VIOLATION_REASONS),
    ...known('origin', wire.origin, EXEC_ORIGINS),
    ...given('workloadName', wire.workloadName),
    ...given('workloadKind', wire.workloadKind),
    ...(wire.pid === 0 ? {} : { pid: wire.pid }),
    ...(wire.uid === undefined ? {} : { uid: wire.uid }),
    ...given('parentName', wire.parentName),
    ...given('containerId', wire.containerId),
    ...given('image', wire.image),
  });
  if (!checked.ok || !wire.overflow) return checked;
  return { ok: true, value: { ...checked.value, overflow: true } };
}

function given<K extends string>(key: K, text: string): Partial<Record<K, string>> {
  return text === '' ? {} : ({ [key]: text } as Record<K, string>);
}

function known<K extends string>(key: K, text: string, names: readonly string[]): Partial<Record<K, string>> {
  return names.includes(text) ? given(key, text) : {};
}
