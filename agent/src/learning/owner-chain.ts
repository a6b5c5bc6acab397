import type { Workload, WorkloadKind } from '@runtime-enforcer/api/workload';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { labelSelectorOf, LabelSelectorError, matchesLabels } from '@runtime-enforcer/kube/label-selector';
import type { Resource } from '@runtime-enforcer/kube/resource-path';

/** A workload that exists, with what an owner reference to it holds. */
export interface OwnedWorkload extends Workload {
  readonly kind: Exclude<WorkloadKind, 'Pod'>;
  readonly namespace: string;
  readonly apiVersion: string;
  readonly uid: string;
}

/** A controlling owner, as an object claims to have it. */
export interface OwnerClaim {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** How an owner of a kind is read and held to what its pod claims. */
export interface OwnerKind {
  readonly kind: OwnedWorkload['kind'];
  readonly apiVersion: string;
  readonly resource: Resource;
  /** What may own it in turn, so that the pod belongs to that. */
  readonly owner?: OwnerKind;
  /** Whether the pod is one of those that the owner would take for its own. */
  readonly takes: (owner: KubeObject, podLabels: Readonly<Record<string, string>>) => boolean;
}

const APPS = { group: 'apps', version: 'v1' } as const;
const BATCH = { group: 'batch', version: 'v1' } as const;

const DEPLOYMENT: OwnerKind = {
  ...{ kind: 'Deployment', apiVersion: 'apps/v1', takes: isSelected },
  resource: { ...APPS, plural: 'deployments' },
};
const CRON_JOB: OwnerKind = {
  ...{ kind: 'CronJob', apiVersion: 'batch/v1', takes: hasTemplateLabels },
  resource: { ...BATCH, plural: 'cronjobs' },
};

/** The kinds that pods may name as their controller. A pod never belongs to a Deployment or CronJob directly. */
const POD_OWNERS: readonly OwnerKind[] = [
  {
    ...{ kind: 'ReplicaSet', apiVersion: 'apps/v1', takes: isSelected, owner: DEPLOYMENT },
    resource: { ...APPS, plural: 'replicasets' },
  },
  {
    ...{ kind: 'StatefulSet', apiVersion: 'apps/v1', takes: isSelected },
    resource: { ...APPS, plural: 'statefulsets' },
  },
  {
    ...{ kind: 'DaemonSet', apiVersion: 'apps/v1', takes: isSelected },
    resource: { ...APPS, plural: 'daemonsets' },
  },
  {
    ...{ kind: 'Job', apiVersion: 'batch/v1', takes: isSelected, owner: CRON_JOB },
    resource: { ...BATCH, plural: 'jobs' },
  },
];

/** The owner that controls an object by its own account; undefined if there is none that is whole. */
export function controllerOf(object: KubeObject): OwnerClaim | undefined {
  const references: unknown = object.metadata['ownerReferences'];
  if (!Array.isArray(references)) return undefined;
  for (const reference of references as unknown[]) {
    if (!isJsonObject(reference) || reference['controller'] !== true) continue;
    const { apiVersion, kind, name, uid } = reference;
    if (typeof apiVersion !== 'string' || typeof kind !== 'string') continue;
    if (typeof name !== 'string' || typeof uid !== 'string' || name === '' || uid === '') continue;
    return { apiVersion, kind, name, uid };
  }
  return undefined;
}

/** How the owner that a pod claims is read; undefined for kinds whose workloads are not learned. */
export function podOwnerKind(claim: OwnerClaim): OwnerKind | undefined {
  return POD_OWNERS.find((known) => isOfKind(claim, known));
}

/** Whether a claim names an object of a kind. */
export function isOfKind(claim: OwnerClaim, kind: OwnerKind): boolean {
  return claim.kind === kind.kind && claim.apiVersion === kind.apiVersion;
}

/** Labels of an object as JSON; what is no text is left out. */
export function labelsOf(object: KubeObject): Readonly<Record<string, string>> {
  const { labels } = object.metadata;
  return isJsonObject(labels) ? labels : {};
}

function isSelected(owner: KubeObject, podLabels: Readonly<Record<string, string>>): boolean {
  const spec = owner['spec'];
  if (!isJsonObject(spec)) return false;
  try {
    const selector = labelSelectorOf(spec['selector']);
    return selector.length > 0 && matchesLabels(selector, podLabels);
  } catch (error) {
    if (error instanceof LabelSelectorError) return false;
    throw error;
  }
}

/** A CronJob has no selector; its Jobs' pods carry the labels of its template. */
function hasTemplateLabels(owner: KubeObject, podLabels: Readonly<Record<string, string>>): boolean {
  let node: unknown = owner['spec'];
  for (const field of ['jobTemplate', 'spec', 'template', 'metadata', 'labels']) {
    if (!isJsonObject(node)) return true;
    node = node[field];
  }
  if (!isJsonObject(node)) return true;
  return Object.entries(node).every(
    ([key, value]) => Object.hasOwn(podLabels, key) && podLabels[key] === value,
  );
}
