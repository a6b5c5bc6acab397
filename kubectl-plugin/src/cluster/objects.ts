import { formatFieldError, type Parsed, quote } from '@runtime-enforcer/api/field-error';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { parseWorkloadPolicy, type WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import {
  parseWorkloadPolicyProposal,
  type WorkloadPolicyProposal,
} from '@runtime-enforcer/api/workload-policy-proposal';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { ContendedError, optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';
import { pagedList } from '@runtime-enforcer/kube/paged-list';
import { collectionPath, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { PluginError } from '../plugin-error.ts';
import type { Connection } from './connection.ts';

/** A resource, and what kubectl calls one object of it. */
export interface NamedResource extends Resource {
  readonly singular: string;
}

export const POLICIES: NamedResource = { ...WORKLOAD_POLICIES, singular: 'workloadpolicy' };
export const PROPOSALS: NamedResource = { ...WORKLOAD_POLICY_PROPOSALS, singular: 'workloadpolicyproposal' };
export const PODS: NamedResource = { group: '', version: 'v1', plural: 'pods', singular: 'pod' };

/** `workloadpolicy.runtimeenforcer.kubewarden.io`, as `-o name` writes it. */
export function typeName({ singular, group }: NamedResource): string {
  return group === '' ? singular : `${singular}.${group}`;
}

export interface ObjectPlace {
  readonly namespace: string;
  readonly name: string;
}

/** An object as it came; undefined when there is none of that name. */
export async function findObject(
  client: ApiClient,
  resource: NamedResource,
  { namespace, name }: ObjectPlace,
): Promise<KubeObject | undefined> {
  const path = objectPath({ resource, namespace, name });
  try {
    const json = await client.request({ path });
    if (isKubeObject(json)) return json;
  } catch (error) {
    if (isMissingObject(error)) return undefined;
    throw error;
  }
  throw new PluginError(`${path}: the answer is no object; is this an API server?`);
}

/** @throws PluginError when there is none of that name */
export async function getObject(
  client: ApiClient,
  resource: NamedResource,
  place: ObjectPlace,
): Promise<KubeObject> {
  return (await findObject(client, resource, place)) ?? fail(notFound(resource, place));
}

export function notFound({ singular, plural }: NamedResource, { namespace, name }: ObjectPlace): PluginError {
  return new PluginError(
    `${singular} ${quote(name)} not found in namespace ${quote(namespace)}`,
    `see what there is: kubectl get ${plural} -n ${namespace}`,
  );
}

/** All objects of a namespace, or of the cluster where it is undefined, sorted by namespace and name. */
export async function listObjects(
  client: ApiClient,
  resource: Resource,
  namespace: string | undefined,
  labelSelector?: string,
): Promise<readonly KubeObject[]> {
  const path = collectionPath(resource, namespace);
  const { objects } = await pagedList(client, { path, query: { labelSelector } });
  return objects.toSorted(byNamespaceAndName);
}

/**
 * Changes an object so that nobody else's write is lost. `change` is called again with the newer object when another
 * write came first, and answers undefined when there is nothing to do.
 *
 * @throws PluginError when there is no such object, and when others change it all the time
 */
export async function updateObject(
  { client }: Connection,
  resource: NamedResource,
  place: ObjectPlace,
  change: (current: KubeObject) => KubeObject | undefined,
): Promise<KubeObject> {
  try {
    return await optimisticUpdate({ client, reference: { resource, ...place }, change });
  } catch (error) {
    if (isMissingObject(error)) throw notFound(resource, place);
    if (!(error instanceof ContendedError)) throw error;
    throw new PluginError(
      `${resource.singular} ${quote(place.name)} was modified concurrently`,
      'run the command again',
      { cause: error },
    );
  }
}

/** The policy in an object; a status that this version cannot read is left out. */
export function policyOf(object: KubeObject): WorkloadPolicy {
  return readable(object, parseWorkloadPolicy);
}

export function proposalOf(object: KubeObject): WorkloadPolicyProposal {
  return readable(object, parseWorkloadPolicyProposal);
}

export async function getPolicy(connection: Connection, name: string): Promise<WorkloadPolicy> {
  const { client, namespace } = connection;
  return policyOf(await getObject(client, POLICIES, { namespace, name }));
}

export async function getProposal(connection: Connection, name: string): Promise<WorkloadPolicyProposal> {
  const { client, namespace } = connection;
  return proposalOf(await getObject(client, PROPOSALS, { namespace, name }));
}

/** The server knows the kind, and has no object of that name. */
export function isMissingObject(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404 && error.said.includes('"');
}

/** The server does not know the kind. */
export function isMissingKind(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404 && !error.said.includes('"');
}

function readable<T>(object: KubeObject, parse: (input: unknown) => Parsed<T>): T {
  const whole = parse(object);
  if (whole.ok) return whole.value;
  const onlyStatus = whole.errors.every(({ segments }) => segments[0] === 'status');
  const parsed = onlyStatus ? parse({ ...object, status: undefined }) : whole;
  if (parsed.ok) return parsed.value;
  const [first] = parsed.errors;
  const { kind = 'object', metadata } = object;
  throw new PluginError(
    `${kind} ${quote(metadata.name)} cannot be read: ${first === undefined ? '' : formatFieldError(first)}`,
    'correct the object with kubectl edit, or use the plugin of the version that is installed in the cluster',
  );
}

function byNamespaceAndName({ metadata: one }: KubeObject, { metadata: other }: KubeObject): number {
  return compare(one.namespace ?? '', other.namespace ?? '') || compare(one.name, other.name);
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function fail(error: Error): never {
  throw error;
}
