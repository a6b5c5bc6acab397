import {
  GROUP,
  VERSION,
  WORKLOAD_POLICY_PLURAL,
  WORKLOAD_POLICY_PROPOSAL_PLURAL,
} from '@runtime-enforcer/api/keys';
import type { Resource } from '@runtime-enforcer/kube/resource-path';

/** The product's own kinds. */
export const WORKLOAD_POLICIES: Resource = { group: GROUP, version: VERSION, plural: WORKLOAD_POLICY_PLURAL };
export const WORKLOAD_POLICY_PROPOSALS: Resource = {
  group: GROUP,
  version: VERSION,
  plural: WORKLOAD_POLICY_PROPOSAL_PLURAL,
};
