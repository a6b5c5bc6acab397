import { rulesByContainer, type RulesByContainer } from './container-rules.ts';
import { API_VERSION, WORKLOAD_POLICY_KIND } from './keys.ts';
import { MAX_LABEL_CHARACTERS } from './kubernetes-name.ts';
import { objectMeta, type ObjectMeta } from './object-meta.ts';
import type { Parsed } from './field-error.ts';
import { flag, mapped, object, oneOf, parseWith, type Check } from './schema.ts';
import { workloadPolicyStatus, type WorkloadPolicyStatus } from './workload-policy-status.ts';

/** What the containers of the pods that name it may start. Absent fields have their defaults. */
export interface WorkloadPolicy {
  readonly metadata: ObjectMeta;
  readonly spec: WorkloadPolicySpec;
  readonly status?: WorkloadPolicyStatus;
}

export interface WorkloadPolicySpec {
  readonly mode: PolicyMode;
  /** What a container may do that `rulesByContainer` does not name: everything, or nothing. */
  readonly unlistedContainers: UnlistedContainers;
  readonly binding: { readonly autoBind: boolean };
  readonly rulesByContainer: RulesByContainer;
}

/** `monitor` reports what is not on the list; `protect` also denies it with EPERM. */
export type PolicyMode = 'monitor' | 'protect';
export type UnlistedContainers = 'allow' | 'deny';

export const POLICY_MODES = ['monitor', 'protect'] as const satisfies readonly PolicyMode[];
export const UNLISTED_CONTAINERS = ['allow', 'deny'] as const satisfies readonly UnlistedContainers[];
export const DEFAULT_UNLISTED_CONTAINERS: UnlistedContainers = 'allow';
/** A pod names its policy in a label, whose value cannot be longer. */
export const MAX_POLICY_NAME_CHARACTERS = MAX_LABEL_CHARACTERS;

const spec: Check<WorkloadPolicySpec> = mapped(
  object(
    { mode: oneOf(POLICY_MODES) },
    {
      unlistedContainers: oneOf(UNLISTED_CONTAINERS),
      binding: object({}, { autoBind: flag }),
      rulesByContainer,
    },
  ),
  (given) => ({
    mode: given.mode,
    unlistedContainers: given.unlistedContainers ?? DEFAULT_UNLISTED_CONTAINERS,
    binding: { autoBind: given.binding?.autoBind ?? false },
    rulesByContainer: given.rulesByContainer ?? new Map(),
  }),
);

const workloadPolicy: Check<WorkloadPolicy> = mapped(
  object(
    {
      apiVersion: oneOf([API_VERSION]),
      kind: oneOf([WORKLOAD_POLICY_KIND]),
      metadata: objectMeta(MAX_POLICY_NAME_CHARACTERS),
      spec,
    },
    { status: workloadPolicyStatus },
  ),
  ({ metadata, spec, status }) => ({ metadata, spec, ...(status && { status }) }),
);

/** Reads a WorkloadPolicy from what JSON or YAML yields. Every unknown field is an error. */
export function parseWorkloadPolicy(input: unknown): Parsed<WorkloadPolicy> {
  return parseWith(workloadPolicy, input);
}
