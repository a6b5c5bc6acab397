import { quote } from '@runtime-enforcer/api/field-error';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { objectNameError } from '@runtime-enforcer/api/kubernetes-name';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { fieldOf, listAt, recordAt, textAt, textsAt } from '../output/json-field.ts';
import { UsageError } from '../plugin-error.ts';
import type { NamedResource } from './objects.ts';

/** A kind whose objects make pods from a template. */
export interface WorkloadResource extends NamedResource {
  readonly kind: string;
  readonly short: string;
  /** Where the pods' template stands. */
  readonly template: readonly string[];
}

const POD_TEMPLATE = ['spec', 'template'];

export const WORKLOADS: readonly WorkloadResource[] = [
  workload('Deployment', 'deploy', 'apps'),
  workload('StatefulSet', 'sts', 'apps'),
  workload('DaemonSet', 'ds', 'apps'),
  workload('ReplicaSet', 'rs', 'apps'),
  workload('Job', 'job', 'batch'),
  { ...workload('CronJob', 'cj', 'batch'), template: ['spec', 'jobTemplate', 'spec', 'template'] },
];

function workload(kind: string, short: string, group: string): WorkloadResource {
  const singular = kind.toLowerCase();
  return { kind, short, group, version: 'v1', singular, plural: `${singular}s`, template: POD_TEMPLATE };
}

/** `deploy/web` as kubectl writes it. Throws a UsageError for what names no workload. */
export function parseWorkload(operand: string): {
  readonly resource: WorkloadResource;
  readonly name: string;
} {
  const [typeText = '', name = '', ...more] = operand.split('/');
  const [type = ''] = typeText.toLowerCase().split('.');
  if (name === '' || more.length > 0) {
    throw new UsageError(`${quote(operand)} is not a workload; expected TYPE/NAME, such as deployment/web`);
  }
  if (['pod', 'pods', 'po'].includes(type)) {
    throw new UsageError(
      'the policy of a pod is chosen when it is created, and cannot be changed afterwards',
      `add the label ${POLICY_LABEL} where the pod comes from, and create it anew`,
    );
  }
  const resource = WORKLOADS.find(({ singular, plural, short }) => [singular, plural, short].includes(type));
  if (resource === undefined) {
    const known = WORKLOADS.map(({ singular }) => singular).join(', ');
    throw new UsageError(`${quote(typeText)} is not a kind of workload; expected one of ${known}`);
  }
  if (objectNameError(name, []) !== undefined)
    throw new UsageError(`${quote(name)} is not the name of a workload`);
  return { resource, name };
}

/** The policy that the pods of a workload will name. */
export function templatePolicy(object: KubeObject, { template }: WorkloadResource): string | undefined {
  return textsAt(object, ...template, 'metadata', 'labels').get(POLICY_LABEL);
}

/** The names of a pod's containers, those of its template included: init, main and ephemeral ones. */
export function containerNames(podOrTemplate: unknown): readonly string[] {
  return ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) =>
    listAt(podOrTemplate, 'spec', list).map((container) => textAt(container, 'name')),
  );
}

/** A merge patch that sets the policy label of the pods' template, or takes it away (null). */
export function templatePatch(
  object: KubeObject,
  { template }: WorkloadResource,
  policy: string | null,
): Readonly<Record<string, unknown>> {
  const label: unknown = { metadata: { labels: { [POLICY_LABEL]: policy } } };
  const patch = template.toReversed().reduce((inner, name) => ({ [name]: inner }), label);
  // With the version, a change that somebody made in between is a conflict and not lost.
  return { metadata: { resourceVersion: object.metadata.resourceVersion }, ...(patch as object) };
}

/** What a change of the template does to what runs, as a sentence. */
export function rolloutSentence(object: KubeObject, { kind }: WorkloadResource): string {
  const replicas = fieldOf(object, 'spec', 'replicas');
  const count = typeof replicas === 'number' ? replicas : 1;
  switch (kind) {
    case 'Deployment':
      return fieldOf(object, 'spec', 'paused') === true
        ? 'The rollout is paused: nothing changes until it is resumed.'
        : `All of its ${count} pods are replaced (${textAt(object, 'spec', 'strategy', 'type') || 'RollingUpdate'}).`;
    case 'StatefulSet':
    case 'DaemonSet': {
      const pods =
        kind === 'DaemonSet' ? textAt(object, 'status', 'desiredNumberScheduled') || '0' : String(count);
      return textAt(object, 'spec', 'updateStrategy', 'type') === 'OnDelete'
        ? `Its ${pods} pods stay as they are until each is deleted by hand (OnDelete).`
        : `Its ${pods} pods are replaced one after another (RollingUpdate).`;
    }
    case 'ReplicaSet':
      return `Its ${count} pods stay as they are; only new ones get the label.`;
    case 'CronJob':
      return 'What runs stays as it is; the pods of the next run get the label.';
    default:
      return 'Its pods stay as they are.';
  }
}

/** The template as an object with `spec`, for {@link containerNames}. */
export function templateOf(object: KubeObject, { template }: WorkloadResource): unknown {
  return recordAt(object, ...template);
}
