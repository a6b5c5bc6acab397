import { isDeepStrictEqual } from 'node:util';
import { quote } from '@runtime-enforcer/api/field-error';
import { GROUP, PROMOTE_LABEL, WORKLOAD_POLICY_PLURAL } from '@runtime-enforcer/api/keys';
import { POLICY_MODES } from '@runtime-enforcer/api/workload-policy';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isAllowed } from './access-review.ts';
import { type AdmissionRequest, type Admit, ALLOWED, refused } from './admission-review.ts';

/**
 * Promoting makes a policy, so it takes the right to create one: to set or change the promote label, and to change the
 * rules of a proposal that carries it. Agents, which write proposals, do not have it.
 */
export function promoteLabelAdmission(client: ApiClient): Admit {
  return async (request, signal) => {
    const { object, namespace, user } = request;
    const label = object?.metadata.labels?.[PROMOTE_LABEL];
    if (label === undefined || object?.metadata['deletionTimestamp'] !== undefined) return ALLOWED;
    if (!POLICY_MODES.some((mode) => mode === label)) {
      const field = `metadata.labels[${PROMOTE_LABEL}]`;
      const modes = POLICY_MODES.map((mode) => `"${mode}"`).join(' or ');
      return refused(422, `${field}: unsupported value ${quote(label)}: must be ${modes}`, { field });
    }
    if (!asksForMore(request)) return ALLOWED;
    const resourceAttributes = { verb: 'create', group: GROUP, resource: WORKLOAD_POLICY_PLURAL, namespace };
    if (await isAllowed(client, user, { resourceAttributes }, signal)) return ALLOWED;
    return refused(
      403,
      `user ${quote(user.username)} cannot promote proposals in namespace ${quote(namespace)}: it takes the right to create ` +
        `${WORKLOAD_POLICY_PLURAL}.${GROUP} there to set the label ${PROMOTE_LABEL}, or to change what carries it`,
    );
  };
}

/** Whether another policy would come of the proposal than before. */
function asksForMore({ object, oldObject }: AdmissionRequest): boolean {
  if (oldObject === undefined) return true;
  const labelOf = (each: typeof object): string | undefined => each?.metadata.labels?.[PROMOTE_LABEL];
  return labelOf(object) !== labelOf(oldObject) || !isDeepStrictEqual(object?.['spec'], oldObject['spec']);
}
