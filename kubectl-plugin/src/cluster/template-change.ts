import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isConflict } from '@runtime-enforcer/kube/api-error';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { objectPath } from '@runtime-enforcer/kube/resource-path';
import { named } from '../output/named.ts';
import { PluginError } from '../plugin-error.ts';
import { getObject } from './objects.ts';
import { templatePatch, type WorkloadResource } from './workloads.ts';

/** Of a workload that rolls out, its controller writes the status several times a second. */
const ATTEMPTS = 10;

/**
 * Sets the policy label of the pods' template, or takes it away, if the workload still is what a person was shown:
 * a status that changed meanwhile is nothing that anybody decided by, any other change is.
 *
 * @param shown the workload as it was shown
 * @throws PluginError when somebody changed the workload since
 */
export async function changeTemplate(
  client: ApiClient,
  resource: WorkloadResource,
  shown: KubeObject,
  policy: string | undefined,
): Promise<void> {
  const { namespace = '', name } = shown.metadata;
  let known = shown;
  for (let attempt = 1; ; attempt++) {
    try {
      await client.request({
        method: 'PATCH',
        path: objectPath({ resource, namespace, name }),
        patchType: 'application/merge-patch+json',
        body: templatePatch(known, resource, policy ?? null),
      });
      return;
    } catch (cause) {
      if (!isConflict(cause)) throw cause;
      known = await getObject(client, resource, { namespace, name });
      if (attempt < ATTEMPTS && isSameVersion(shown, known)) continue;
      const title = named(resource.kind, { namespace, name });
      throw new PluginError(`${title} was modified concurrently`, 'run the command again', { cause });
    }
  }
}

/** Whether nobody has changed what the object is to be; the API server counts that. */
function isSameVersion({ metadata: one }: KubeObject, { metadata: other }: KubeObject): boolean {
  return one.uid === other.uid && one['generation'] === other['generation'];
}
