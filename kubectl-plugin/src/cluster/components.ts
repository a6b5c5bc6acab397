import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { labelsOf, listAt, textAt } from '../output/json-field.ts';
import { listObjects, PODS } from './objects.ts';

/** The parts of the product that run as pods, by the label that the chart gives them. */
export const COMPONENTS = ['agent', 'controller', 'debugger'] as const;
export type ComponentName = (typeof COMPONENTS)[number];

export const COMPONENT_LABEL = 'app.kubernetes.io/component';
export const PRODUCT_SELECTOR = 'app.kubernetes.io/name=runtime-enforcer';

export interface Component {
  readonly component: ComponentName;
  readonly pods: readonly KubeObject[];
}

/** The product's pods in the whole cluster. Throws an ApiError where pods may not be listed. */
export async function findComponents(client: ApiClient): Promise<readonly Component[]> {
  const pods = await listObjects(client, PODS, undefined, PRODUCT_SELECTOR);
  return COMPONENTS.map((component) => ({
    component,
    pods: pods.filter((pod) => labelsOf(pod).get(COMPONENT_LABEL) === component),
  }));
}

export function imagesOf(pods: readonly KubeObject[]): readonly string[] {
  const images = pods.flatMap((pod) =>
    listAt(pod, 'spec', 'containers').map((container) => textAt(container, 'image')),
  );
  return [...new Set(images)].toSorted();
}

export function isReady(pod: KubeObject): boolean {
  return listAt(pod, 'status', 'conditions').some(
    (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
  );
}

export function nodeOf(pod: KubeObject): string {
  return textAt(pod, 'spec', 'nodeName');
}
