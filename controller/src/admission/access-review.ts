import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isJsonObject } from '@runtime-enforcer/kube/kube-object';
import type { RequestUser } from './admission-review.ts';

const PATH = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

/** What somebody wants to do: to objects of a kind, or to a path that is no object. */
export type AccessAttributes =
  | {
      readonly resourceAttributes: {
        readonly verb: string;
        readonly group: string;
        readonly resource: string;
        readonly namespace: string;
      };
    }
  | { readonly nonResourceAttributes: { readonly verb: string; readonly path: string } };

/**
 * Whether the API server would let a user do something.
 *
 * @throws ApiError, ConnectionError when it cannot be asked
 */
export async function isAllowed(
  client: ApiClient,
  { username, uid, groups, extra }: RequestUser,
  attributes: AccessAttributes,
  signal: AbortSignal,
): Promise<boolean> {
  const answer = await client.request({
    method: 'POST',
    path: PATH,
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: username, uid, groups, extra, ...attributes },
    },
    signal,
  });
  const status = isJsonObject(answer) && isJsonObject(answer['status']) ? answer['status'] : {};
  return status['allowed'] === true && status['denied'] !== true;
}
