import { MAX_MESSAGE_CHARACTERS } from '@runtime-enforcer/api/limits';
import type { ReportedPolicy } from './reported.ts';
import { nameOfNumber, wireText } from './wire-values.ts';

/** `PolicyStatus` of proto/agent.proto. */
export interface WirePolicy {
  readonly state: number;
  readonly mode: number;
  readonly message: string;
  readonly digest: string;
  readonly paths: number;
}

/** By the numbers of the enums, 0 for unspecified. */
const STATES = ['unknown', 'ready', 'error', 'retained'] as const;
const MODES = ['unknown', 'monitor', 'protect'] as const;

const MAX_DIGEST_CHARACTERS = 128;
/** Two names and the slash between them; what is longer is the name of no policy. */
const MAX_KEY_CHARACTERS = 253 + 1 + 253;

export function policyToWire(policy: ReportedPolicy): WirePolicy {
  return {
    state: STATES.indexOf(policy.state),
    mode: modeToWire(policy.mode),
    message: wireText(policy.message.slice(0, MAX_MESSAGE_CHARACTERS)),
    digest: policy.digest,
    paths: policy.paths,
  };
}

export function policyFromWire(wire: WirePolicy): ReportedPolicy {
  return {
    state: nameOfNumber(STATES, wire.state),
    mode: modeFromWire(wire.mode),
    message: wire.message.slice(0, MAX_MESSAGE_CHARACTERS),
    digest: wire.digest.slice(0, MAX_DIGEST_CHARACTERS),
    paths: wire.paths,
  };
}

export function modeToWire(mode: ReportedPolicy['mode']): number {
  return MODES.indexOf(mode);
}

export function modeFromWire(mode: number): ReportedPolicy['mode'] {
  return nameOfNumber(MODES, mode);
}

export function policiesToWire(policies: ReadonlyMap<string, ReportedPolicy>): Record<string, WirePolicy> {
  return Object.fromEntries(Array.from(policies, ([key, policy]) => [wireText(key), policyToWire(policy)]));
}

export function policiesFromWire(
  policies: Readonly<Record<string, WirePolicy>>,
): ReadonlyMap<string, ReportedPolicy> {
  return new Map(
    Object.entries(policies)
      .filter(([key]) => key.length <= MAX_KEY_CHARACTERS)
      .map(([key, policy]) => [key, policyFromWire(policy)]),
  );
}
