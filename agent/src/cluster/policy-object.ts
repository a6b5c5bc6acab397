import { formatFieldError } from '@runtime-enforcer/api/field-error';
import { API_VERSION, PROMOTED_FROM_LABEL, WORKLOAD_POLICY_KIND } from '@runtime-enforcer/api/keys';
import { parseWorkloadPolicy, type WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';

/** Errors of one policy that its state tells. */
const MAX_ERRORS_TOLD = 3;

/** The policy, or why it cannot be one: the API server may hold what an older CRD let through. */
export type PolicyReading =
  { readonly ok: true; readonly policy: WorkloadPolicy } | { readonly ok: false; readonly problem: string };

/** What is kept of a policy of the API server: not its status, which changes often and is of no use here. */
export interface PolicyObject {
  readonly namespace: string;
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  /** The proposal that it was made from. */
  readonly promotedFrom: string | undefined;
  readonly reading: PolicyReading;
}

/**
 * Reads at once what is kept: ten thousand objects as they come take several times the room of what is in them.
 *
 * @param known what was kept of it before: given back if what matters is the same
 * @param share makes what was read hold nothing that other policies hold too
 */
export function keepPolicyObject(
  object: KubeObject,
  known: PolicyObject | undefined,
  share: (policy: WorkloadPolicy) => WorkloadPolicy,
): PolicyObject {
  const { namespace = '', uid, generation, labels } = object.metadata;
  const identity = {
    ...{ namespace, uid },
    generation: typeof generation === 'number' ? generation : undefined,
    promotedFrom: labels?.[PROMOTED_FROM_LABEL],
  };
  const isSame =
    known !== undefined &&
    identity.generation !== undefined &&
    known.uid === uid &&
    known.generation === identity.generation &&
    known.promotedFrom === identity.promotedFrom;
  return isSame ? known : { ...identity, reading: read(object, identity, share) };
}

function read(
  object: KubeObject,
  { namespace, uid, generation, promotedFrom }: Omit<PolicyObject, 'reading'>,
  share: (policy: WorkloadPolicy) => WorkloadPolicy,
): PolicyReading {
  const parsed = parseWorkloadPolicy({
    apiVersion: API_VERSION,
    kind: WORKLOAD_POLICY_KIND,
    metadata: {
      ...{ name: object.metadata.name, namespace, uid, generation },
      ...(promotedFrom !== undefined && { labels: { [PROMOTED_FROM_LABEL]: promotedFrom } }),
    },
    spec: object['spec'],
  });
  if (parsed.ok) return { ok: true, policy: share(parsed.value) };
  const told = parsed.errors.slice(0, MAX_ERRORS_TOLD).map(formatFieldError);
  const more = parsed.errors.length - told.length;
  return { ok: false, problem: told.join('; ') + (more > 0 ? `; and ${more} more` : '') };
}
