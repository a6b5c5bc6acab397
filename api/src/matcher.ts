import {
  executablePathFromBytes,
  MAX_PATH_BYTES,
  type ExecutableKind,
  type ExecutablePath,
} from './executable-path.ts';
import type { ViolationAction, ViolationReason } from './violation.ts';
import type { WorkloadPolicySpec } from './workload-policy.ts';

/** An exec in a container that is bound to a policy. */
export interface ExecAttempt {
  readonly container: string;
  /** As the kernel resolves it; empty when it could not. */
  readonly path: Uint8Array;
  readonly kind: ExecutableKind;
  /** Whether the task is in the mount namespace that the container was started in. */
  readonly mountNamespace: 'own' | 'other';
}

/** What becomes of an exec, as the kernel decides it. */
export type Decision =
  | { readonly outcome: 'allowed' }
  /** The policy does not name the container, and lets such containers alone. */
  | { readonly outcome: 'unrestricted' }
  /** Another mount namespace, and the container's rules leave those alone. */
  | { readonly outcome: 'unchecked' }
  | { readonly outcome: 'violation'; readonly action: ViolationAction; readonly reason: ViolationReason };

const REASON_BY_KIND = {
  deleted: 'Unlinked',
  memfd: 'Memfd',
  foreignMount: 'ForeignMount',
} as const satisfies Record<Exclude<ExecutableKind, 'file'>, ViolationReason>;

/**
 * The user-space answer to one exec: what the kernel program answers for the same policy and exec.
 * @param maxPathBytes longest path that the kernel's tables can hold (508 before Linux 5.11)
 */
export function decide(
  policy: Pick<WorkloadPolicySpec, 'mode' | 'unlistedContainers' | 'rulesByContainer'>,
  attempt: ExecAttempt,
  maxPathBytes = MAX_PATH_BYTES,
): Decision {
  const rules = policy.rulesByContainer.get(attempt.container)?.executables;
  if (rules === undefined && policy.unlistedContainers === 'allow') return { outcome: 'unrestricted' };
  if (attempt.mountNamespace === 'other' && rules?.otherMountNamespaces === 'unchecked') {
    return { outcome: 'unchecked' };
  }
  const reason = violationReason(rules?.allowed, attempt, maxPathBytes);
  return reason === undefined
    ? { outcome: 'allowed' }
    : { outcome: 'violation', action: policy.mode, reason };
}

function violationReason(
  allowed: readonly ExecutablePath[] | undefined,
  { path, kind, mountNamespace }: ExecAttempt,
  maxPathBytes: number,
): ViolationReason | undefined {
  if (mountNamespace === 'other') return 'OtherMountNamespace';
  if (kind !== 'file') return REASON_BY_KIND[kind];
  if (path[0] !== SLASH) return 'Unresolved';
  if (path.length > maxPathBytes) return 'TooLong';
  if (allowed === undefined) return 'UnlistedContainer';
  const parsed = executablePathFromBytes(path);
  return parsed.ok && allowed.includes(parsed.value) ? undefined : 'Unlisted';
}

const SLASH = 0x2f;
