import { formatFieldError } from '@runtime-enforcer/api/field-error';
import {
  API_VERSION,
  GROUP,
  PROMOTED_FROM_LABEL,
  VERSION,
  WORKLOAD_POLICY_KIND,
  WORKLOAD_POLICY_PLURAL,
} from '@runtime-enforcer/api/keys';
import { parseWorkloadPolicy, type WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { Resource } from '@runtime-enforcer/kube/resource-path';

export const WORKLOAD_POLICIES: Resource = { group: GROUP, version: VERSION, plural: WORKLOAD_POLICY_PLURAL };

/** Errors of one policy that its state tells. */
const MAX_ERRORS_TOLD = 3;

/** What is kept of a policy of the API server: not its status, which changes often and is of no use here. */
export interface PolicyObject {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  /** The proposal that it was made from. */
  readonly promotedFrom: string | undefined;
  /** As it came, until it has been read. */
  spec: unknown;
  /** What was read of it. */
  policy: WorkloadPolicy | undefined;
}

/** @param known what was kept of it before: given back if what matters is the same */
export function keepPolicyObject(object: KubeObject, known: PolicyObject | undefined): PolicyObject {
  const { name, namespace = '', uid, generation, labels } = object.metadata;
  const next: PolicyObject = {
    ...{ name, namespace, uid },
    generation: typeof generation === 'number' ? generation : undefined,
    promotedFrom: labels?.[PROMOTED_FROM_LABEL],
    spec: object['spec'],
    policy: undefined,
  };
  if (known === undefined || next.generation === undefined) return next;
  const isSame =
    known.uid === next.uid &&
    known.generation === next.generation &&
    known.promotedFrom === next.promotedFrom;
  return isSame ? known : next;
}

/** The policy, or why it cannot be one: the API server may hold what an older CRD let through. */
export function readPolicyObject(
  object: PolicyObject,
): { readonly ok: true; readonly policy: WorkloadPolicy } | { readonly ok: false; readonly problem: string } {
  const { name, namespace, uid, generation, promotedFrom, spec } = object;
  const parsed = parseWorkloadPolicy({
    apiVersion: API_VERSION,
    kind: WORKLOAD_POLICY_KIND,
    metadata: {
      ...{ name, namespace, uid, generation },
      ...(promotedFrom !== undefined && { labels: { [PROMOTED_FROM_LABEL]: promotedFrom } }),
    },
    spec,
  });
  if (parsed.ok) return { ok: true, policy: parsed.value };
  const told = parsed.errors.slice(0, MAX_ERRORS_TOLD).map(formatFieldError);
  const more = parsed.errors.length - told.length;
  return { ok: false, problem: told.join('; ') + (more > 0 ? `; and ${more} more` : '') };
}
