/** A kind of object as the API's paths name it. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** In lower case: `workloadpolicies`. */
  readonly plural: string;
}

export const NAMESPACES: Resource = { group: '', version: 'v1', plural: 'namespaces' };
export const PODS: Resource = { group: '', version: 'v1', plural: 'pods' };
export const EVENTS: Resource = { group: '', version: 'v1', plural: 'events' };
export const LEASES: Resource = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

/** The path of all objects of a kind, in one namespace or in all of the cluster. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const { group, version, plural } = resource;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const place = namespace === undefined ? '' : `/namespaces/${segment(namespace)}`;
  return `${root}${place}/${plural}`;
}

export interface ObjectReference {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly name: string;
  readonly subresource?: string;
}

/**
 * The path of one object.
 *
 * @throws RangeError for a name that no object can have, and that would lead to another path
 */
export function objectPath({ resource, namespace, name, subresource }: ObjectReference): string {
  const path = `${collectionPath(resource, namespace)}/${segment(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** For messages: `workloadpolicies shop/web`. */
export function describeReference({ resource, namespace, name }: ObjectReference): string {
  return `${resource.plural} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

function segment(name: string): string {
  if (name === '' || name === '.' || name === '..') {
    throw new RangeError(`${JSON.stringify(name)} is not the name of an object`);
  }
  return encodeURIComponent(name);
}
