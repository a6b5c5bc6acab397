import { fieldError, type Parsed } from './field-error.ts';
import { PROMOTED_FROM_LABEL } from './keys.ts';
import { objectNameError } from './kubernetes-name.ts';
import {
  DEFAULT_UNLISTED_CONTAINERS,
  MAX_POLICY_NAME_CHARACTERS,
  type PolicyMode,
  type WorkloadPolicy,
} from './workload-policy.ts';
import type { WorkloadPolicyProposal } from './workload-policy-proposal.ts';

/**
 * The policy that a proposal becomes: same name, namespace and rules, nothing else of the proposal. Fails for a
 * name that no pod label can hold.
 */
export function promote(proposal: WorkloadPolicyProposal, mode: PolicyMode): Parsed<WorkloadPolicy> {
  const { name, namespace } = proposal.metadata;
  if (name.length > MAX_POLICY_NAME_CHARACTERS) {
    return {
      ok: false,
      errors: [
        fieldError(['metadata', 'name'], {
          message: `the name has ${name.length} characters, and pods name their policy in a label`,
          expected: `at most ${MAX_POLICY_NAME_CHARACTERS} characters`,
          remedy: 'create a WorkloadPolicy with a shorter name and these rules',
        }),
      ],
    };
  }
  const error = objectNameError(name, ['metadata', 'name']);
  if (error !== undefined) return { ok: false, errors: [error] };
  return {
    ok: true,
    value: {
      metadata: {
        name,
        namespace,
        labels: new Map([[PROMOTED_FROM_LABEL, name]]),
        annotations: new Map(),
        ownerReferences: [],
      },
      spec: {
        mode,
        unlistedContainers: DEFAULT_UNLISTED_CONTAINERS,
        binding: { autoBind: false },
        rulesByContainer: new Map(proposal.spec.rulesByContainer),
      },
    },
  };
}
