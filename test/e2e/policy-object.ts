import { API_VERSION, WORKLOAD_POLICY_KIND } from '@runtime-enforcer/api/keys';

/**
 * A policy in the mode protect.
 *
 * @param lists what each container may start, by its name
 * @param more fields of the policy's spec
 */
export function policyObject(
  name: string,
  lists: Readonly<Record<string, readonly string[]>>,
  more: object = {},
): object {
  const rules = Object.entries(lists).map(([key, allowed]) => [key, { executables: { allowed } }] as const);
  return {
    ...{ apiVersion: API_VERSION, kind: WORKLOAD_POLICY_KIND, metadata: { name } },
    spec: { mode: 'protect', rulesByContainer: Object.fromEntries(rules), ...more },
  };
}
