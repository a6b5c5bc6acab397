import { acknowledgementRequests, type AcknowledgementRequest } from '@runtime-enforcer/api/acknowledgement';
import { policyDigest } from '@runtime-enforcer/api/policy-digest';
import { NO_STATUS } from '@runtime-enforcer/api/policy-status';
import { parseWith } from '@runtime-enforcer/api/schema';
import { parseWorkloadPolicy, type WorkloadPolicySpec } from '@runtime-enforcer/api/workload-policy';
import {
  workloadPolicyStatus,
  type WorkloadPolicyStatus,
} from '@runtime-enforcer/api/workload-policy-status';
import { type KubeObject, withoutManagedFields } from '@runtime-enforcer/kube/kube-object';

/** A policy as the API server holds it. */
export interface KnownPolicy {
  /** As it came, without managed fields. */
  readonly object: KubeObject;
  readonly uid: string;
  readonly generation: number | undefined;
  readonly isDeleting: boolean;
  readonly spec: WorkloadPolicySpec;
  readonly digest: string;
  readonly requests: readonly AcknowledgementRequest[];
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** @throws Error naming the field, for a policy that the CRD should not have let in */
export function knownPolicy(object: KubeObject): KnownPolicy {
  const { apiVersion, kind, metadata, spec } = object;
  const { name, namespace, uid = '', generation, deletionTimestamp, creationTimestamp } = metadata;
  const parsed = parseWorkloadPolicy({ apiVersion, kind, metadata: { name, namespace }, spec });
  if (!parsed.ok) throw new Error(`the policy ${name} cannot be read: ${JSON.stringify(parsed.errors[0])}`);
  return {
    object: withoutManagedFields(object),
    uid,
    generation: typeof generation === 'number' ? generation : undefined,
    isDeleting: deletionTimestamp !== undefined,
    spec: parsed.value.spec,
    digest: policyDigest(parsed.value.spec),
    requests: acknowledgementRequests(metadata.annotations),
    createdAt: Date.parse(String(creationTimestamp)) || 0,
  };
}

/** The status of a policy; what cannot be read counts as none. */
export function statusOf({ status }: KubeObject): WorkloadPolicyStatus {
  const parsed = parseWith(workloadPolicyStatus, status ?? {});
  return parsed.ok ? parsed.value : NO_STATUS;
}
