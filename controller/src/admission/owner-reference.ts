import { quote } from '@runtime-enforcer/api/field-error';
import { SHORT_KINDS } from '@runtime-enforcer/api/workload';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { isJsonObject, isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { type AdmissionVerdict, type Admit, ALLOWED, refused } from './admission-review.ts';

const FIELD = 'metadata.ownerReferences';

/** The kinds that a proposal can belong to. */
const OWNERS = {
  Deployment: { group: 'apps', version: 'v1', plural: 'deployments' },
  DaemonSet: { group: 'apps', version: 'v1', plural: 'daemonsets' },
  StatefulSet: { group: 'apps', version: 'v1', plural: 'statefulsets' },
  ReplicaSet: { group: 'apps', version: 'v1', plural: 'replicasets' },
  Job: { group: 'batch', version: 'v1', plural: 'jobs' },
  CronJob: { group: 'batch', version: 'v1', plural: 'cronjobs' },
} as const satisfies Record<string, Resource>;
type OwnerKind = keyof typeof OWNERS;

/**
 * Completes the owner reference of a new proposal from the workload that it names, so that the proposal goes with it. A
 * reference that claims a uid, a version or a kind which is not the workload's is refused.
 */
export function ownerReferenceAdmission(client: ApiClient): Admit {
  return async ({ operation, object, namespace }, signal) => {
    if (operation !== 'CREATE' || object === undefined) return ALLOWED;
    const claimed = claimedOwner(object);
    if (typeof claimed === 'string') return invalid(claimed);
    const { kind, name, given } = claimed;
    const resource = OWNERS[kind];
    const owner = await read(client, resource, namespace, name, signal);
    if (owner === undefined) {
      return refused(410, `the owner reference ${kind} ${namespace}/${name} is not found`);
    }
    const apiVersion = `${resource.group}/${resource.version}`;
    const { uid } = owner.metadata;
    for (const [field, wanted] of [
      ['uid', uid],
      ['apiVersion', apiVersion],
    ] as const) {
      const claim = given[field];
      if (claim !== undefined && claim !== '' && claim !== wanted) {
        return invalid(
          `the owner reference's ${field} is not that of ${kind} ${namespace}/${name}; leave it out to have it completed`,
        );
      }
    }
    const complete = { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
    return {
      allowed: true,
      patch: isSame(given, complete)
        ? []
        : [{ op: 'replace', path: '/metadata/ownerReferences/0', value: complete }],
      ...nameWarning(object, kind, name),
    };
  };
}

interface ClaimedOwner {
  readonly kind: OwnerKind;
  readonly name: string;
  readonly given: Readonly<Record<string, unknown>>;
}

/** What the one owner reference says, or what is wrong with it. */
function claimedOwner({ metadata }: KubeObject): ClaimedOwner | string {
  const references = metadata['ownerReferences'];
  const [given, ...others] = Array.isArray(references) ? (references as unknown[]) : [];
  if (!isJsonObject(given) || others.length > 0) {
    return `${FIELD} must name exactly one owner, the workload that the proposal is for`;
  }
  const { kind, name } = given;
  if (typeof kind !== 'string' || kind === '') return `${FIELD}[0].kind is missing`;
  if (typeof name !== 'string' || name === '' || name === '.' || name === '..') {
    return `${FIELD}[0].name is missing`;
  }
  if (!isOwnerKind(kind)) {
    return `${FIELD}[0].kind ${quote(kind)} is not supported; expected one of ${Object.keys(OWNERS).join(', ')}`;
  }
  return { kind, name, given };
}

function isOwnerKind(kind: string): kind is OwnerKind {
  return Object.hasOwn(OWNERS, kind);
}

function isSame(given: Readonly<Record<string, unknown>>, complete: Readonly<Record<string, unknown>>) {
  const names = new Set([...Object.keys(given), ...Object.keys(complete)]);
  return [...names].every((name) => given[name] === complete[name]);
}

/** Auto-binding and the next learning look for the policy of a workload under this name. */
function nameWarning({ metadata }: KubeObject, kind: OwnerKind, name: string): { warnings?: string[] } {
  const expected = `${SHORT_KINDS[kind]}-${name}`;
  if (metadata.name === expected) return {};
  return {
    warnings: [`the proposal of this ${kind} is named ${expected} by learning; this one is separate`],
  };
}

async function read(
  client: ApiClient,
  resource: Resource,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  try {
    const owner = await client.request({ path: objectPath({ resource, namespace, name }), signal });
    return isKubeObject(owner) ? owner : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function invalid(message: string): AdmissionVerdict {
  return refused(422, `failed to validate proposal: invalid proposal: ${message}`, { field: FIELD });
}
