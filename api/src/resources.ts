import { GROUP, VERSION, WORKLOAD_POLICY_PLURAL, WORKLOAD_POLICY_PROPOSAL_PLURAL } from './keys.ts';

/** The product's own kinds, as the API's paths name them. */
export const WORKLOAD_POLICIES = { group: GROUP, version: VERSION, plural: WORKLOAD_POLICY_PLURAL } as const;
export const WORKLOAD_POLICY_PROPOSALS = {
  group: GROUP,
  version: VERSION,
  plural: WORKLOAD_POLICY_PROPOSAL_PLURAL,
} as const;
