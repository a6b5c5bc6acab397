import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { Admit } from './admission/admission-review.ts';
import type { KnownPolicies } from './admission/known-policies.ts';
import { ownerReferenceAdmission } from './admission/owner-reference.ts';
import { policyDeletionAdmission } from './admission/policy-deletion.ts';
import { policyLabelAdmission, type UnknownPolicyAction } from './admission/policy-label.ts';
import { promoteLabelAdmission } from './admission/promote-label.ts';

/** Every webhook, by the path under which the configurations of the chart know it. */
export function webhooks(options: {
  readonly client: ApiClient;
  readonly policies: Pick<KnownPolicies, 'exists'>;
  readonly unknownPolicy: UnknownPolicyAction;
}): ReadonlyMap<string, Admit> {
  const { client, policies, unknownPolicy } = options;
  return new Map([
    [
      '/mutate-runtimeenforcer-kubewarden-io-v1alpha1-workloadpolicyproposal',
      ownerReferenceAdmission(client),
    ],
    [
      '/validate-runtimeenforcer-kubewarden-io-v1alpha1-workloadpolicyproposal',
      promoteLabelAdmission(client),
    ],
    ['/validate-runtimeenforcer-kubewarden-io-v1alpha1-workloadpolicy', policyDeletionAdmission(client)],
    [
      '/validate-policy-label',
      policyLabelAdmission({
        unknownPolicy,
        policyExists: async (namespace, name, signal) => await policies.exists(namespace, name, signal),
      }),
    ],
  ]);
}
