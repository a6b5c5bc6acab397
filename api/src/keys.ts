/** API group of every resource, label and annotation of the product. */
export const GROUP = 'runtimeenforcer.kubewarden.io';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}` as const;

export const WORKLOAD_POLICY_KIND = 'WorkloadPolicy';
export const WORKLOAD_POLICY_PROPOSAL_KIND = 'WorkloadPolicyProposal';
export const WORKLOAD_POLICY_PLURAL = 'workloadpolicies';
export const WORKLOAD_POLICY_PROPOSAL_PLURAL = 'workloadpolicyproposals';

/** Pod label: the policy, in the pod's namespace, that its containers are bound to. */
export const POLICY_LABEL = `${GROUP}/policy`;
/** Proposal label: `monitor` or `protect` asks for a policy made from the proposal. */
export const PROMOTE_LABEL = `${GROUP}/promote`;
/** Policy label: the proposal it was made from. */
export const PROMOTED_FROM_LABEL = `${GROUP}/promoted-from`;
/** Policy annotation: a summary, as JSON, of what the proposal it was made from rested on. */
export const EVIDENCE_ANNOTATION = `${GROUP}/evidence`;
/**
 * Namespace label: `warn` or `deny` asks every new pod of the namespace to name a policy. On a pod, `exempt` leaves it
 * out.
 */
export const REQUIRE_POLICY_LABEL = `${GROUP}/require-policy`;
/** Policy annotation prefix, followed by a violation's id; the value is the reason. */
export const ACKNOWLEDGE_ANNOTATION_PREFIX = `${GROUP}/acknowledge-`;

/** Namespace of a resource that names none, as kubectl has it. */
export const DEFAULT_NAMESPACE = 'default';
