import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath } from '@runtime-enforcer/kube/resource-path';

/** What a version of a group serves, as the API server's discovery tells it. */
interface ServedResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/**
 * The path under which objects of this kind are created.
 *
 * @throws ApiError where the group or its version is not served; Error where the kind is not, or the object names no version
 */
export async function creationPath(client: ApiClient, object: KubeObject): Promise<string> {
  const { apiVersion, kind = '' } = object;
  if (apiVersion === undefined) throw new Error(`${kind} ${object.metadata.name} names no apiVersion`);
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const found = await client.request({ path: root });
  const resources = (isJsonObject(found) ? found['resources'] : []) as readonly ServedResource[];
  const resource = resources.find((each) => each.kind === kind && !each.name.includes('/'));
  if (resource === undefined) throw new Error(`${apiVersion} does not serve the kind ${kind}`);
  const place = { group, version, plural: resource.name };
  return resource.namespaced
    ? collectionPath(place, object.metadata.namespace ?? 'default')
    : collectionPath(place);
}

/**
 * Creates an object, as strictly as the API server can check it.
 *
 * @param options.dryRun true: everything is checked, and nothing kept
 * @throws ApiError when it is refused
 */
export async function createObject(
  client: ApiClient,
  object: KubeObject,
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<KubeObject> {
  const created = await client.request({
    method: 'POST',
    path: await creationPath(client, object),
    query: { fieldValidation: 'Strict', ...(dryRun && { dryRun: 'All' }) },
    body: object,
  });
  return created as KubeObject;
}
