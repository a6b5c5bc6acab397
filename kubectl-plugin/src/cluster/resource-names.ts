import { quote } from '@runtime-enforcer/api/field-error';
import { objectNameError } from '@runtime-enforcer/api/kubernetes-name';
import { UsageError } from '../plugin-error.ts';

const POLICY_TYPES = new Set(['workloadpolicy', 'workloadpolicies', 'wp']);
const PROPOSAL_TYPES = new Set(['workloadpolicyproposal', 'workloadpolicyproposals', 'wpp']);

/** The name of a policy, also written `wp/NAME`. Throws a UsageError for what can be none. */
export function policyName(operand: string): string {
  return nameOf(operand, POLICY_TYPES, 'policy');
}

/** The name of a proposal, also written `wpp/NAME`. */
export function proposalName(operand: string): string {
  return nameOf(operand, PROPOSAL_TYPES, 'proposal');
}

function nameOf(operand: string, types: ReadonlySet<string>, what: string): string {
  if (operand === '') throw new UsageError(`the name of a ${what} is missing`);
  const slash = operand.indexOf('/');
  const name = operand.slice(slash + 1);
  const [type = ''] = operand.slice(0, Math.max(slash, 0)).toLowerCase().split('.');
  if (slash >= 0 && !types.has(type)) {
    throw new UsageError(
      `${quote(operand)} is not a ${what}; expected NAME or ${[...types].at(-1) ?? ''}/NAME`,
    );
  }
  if (objectNameError(name, []) !== undefined) {
    throw new UsageError(
      `${quote(name)} is not the name of a ${what}; expected lower-case letters, digits, "-" and "."`,
    );
  }
  return name;
}
