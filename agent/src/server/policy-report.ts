import type { ReportedPolicy } from '@runtime-enforcer/rpc/reported';
import { MAX_MESSAGE_CHARACTERS } from '@runtime-enforcer/api/limits';
import type { PolicyState } from '../policies/policy-state.ts';

/** A policy's state as the controller is told it. */
export function reportedPolicy({ state, mode, message, digest, paths }: PolicyState): ReportedPolicy {
  return {
    state: state === 'failed' ? 'error' : state,
    mode,
    message: (message ?? '').slice(0, MAX_MESSAGE_CHARACTERS),
    digest,
    paths,
  };
}

export function isSamePolicy(one: ReportedPolicy, other: ReportedPolicy): boolean {
  return (
    one.state === other.state &&
    one.mode === other.mode &&
    one.message === other.message &&
    one.digest === other.digest &&
    one.paths === other.paths
  );
}
