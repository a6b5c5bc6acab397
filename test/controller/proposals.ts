import { API_VERSION, PROMOTE_LABEL, WORKLOAD_POLICY_PROPOSAL_KIND } from '@runtime-enforcer/api/keys';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';

/** Rules that tell one proposal from another. */
export function rulesFor(name: string): object {
  return { app: { executables: { allowed: ['/bin/sh', `/usr/bin/${name}`], otherMountNamespaces: 'deny' } } };
}

/** Creates a proposal, with its promote label where a mode is given. */
export async function propose(
  client: ApiClient,
  namespace: string,
  name: string,
  mode?: string,
): Promise<KubeObject> {
  const metadata = { name, ...(mode !== undefined && { labels: { [PROMOTE_LABEL]: mode } }) };
  const created = await client.request({
    method: 'POST',
    path: collectionPath(WORKLOAD_POLICY_PROPOSALS, namespace),
    body: {
      apiVersion: API_VERSION,
      kind: WORKLOAD_POLICY_PROPOSAL_KIND,
      metadata,
      spec: { rulesByContainer: rulesFor(name) },
    },
  });
  return created as KubeObject;
}

/** Sets the promote label. */
export async function markForPromotion(
  client: ApiClient,
  namespace: string,
  name: string,
  mode: string | null,
): Promise<void> {
  await client.request({
    method: 'PATCH',
    path: objectPath({ resource: WORKLOAD_POLICY_PROPOSALS, namespace, name }),
    patchType: 'application/merge-patch+json',
    body: { metadata: { labels: { [PROMOTE_LABEL]: mode } } },
  });
}

/** An object, or undefined where there is none. */
export async function objectOf(
  client: ApiClient,
  resource: Resource,
  namespace: string,
  name: string,
): Promise<KubeObject | undefined> {
  try {
    return (await client.request({ path: objectPath({ resource, namespace, name }) })) as KubeObject;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
