import { formatFieldError } from './field-error.ts';
import { POLICY_LABEL } from './keys.ts';
import { objectNameError } from './kubernetes-name.ts';
import { MAX_POLICY_NAME_CHARACTERS } from './workload-policy.ts';

/** What a pod's labels say about the policy of its containers. */
export type PolicyBinding =
  | { readonly kind: 'unlabelled' }
  /** The label is there and empty: it names no policy, on purpose. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'policy'; readonly policyName: string }
  /** No policy can have this name. `message` is safe to print. */
  | { readonly kind: 'invalid'; readonly message: string };

/** Reads the policy label of a pod. Labels are tenant input: any text is answered. */
export function readPolicyBinding(labels: ReadonlyMap<string, string>): PolicyBinding {
  const value = labels.get(POLICY_LABEL);
  if (value === undefined) return { kind: 'unlabelled' };
  if (value === '') return { kind: 'empty' };
  const error = objectNameError(value, ['metadata', 'labels', POLICY_LABEL], MAX_POLICY_NAME_CHARACTERS);
  return error === undefined
    ? { kind: 'policy', policyName: value }
    : { kind: 'invalid', message: formatFieldError(error) };
}
