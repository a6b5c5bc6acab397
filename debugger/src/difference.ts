import { quote } from '@runtime-enforcer/api/field-error';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';

/** What is not as it should be between the cluster, an agent's cache and the kernel of its node. */
export type DifferenceKind =
  | 'pod-missing'
  | 'pod-unexpected'
  | 'pod-field'
  | 'container-missing'
  | 'container-unexpected'
  | 'container-field'
  /** The kernel holds nothing of a container that is to be checked or learned. */
  | 'kernel-missing'
  /** The kernel holds a container that the agent leaves alone. */
  | 'kernel-unexpected'
  /** The kernel holds it by another place or content than was written. */
  | 'kernel-field'
  /** The kernel does not find a container by its mount namespace. */
  | 'kernel-no-namespace'
  /** The kernel looks the container up in a list that is not there: nothing may start. */
  | 'kernel-no-list'
  /** The kernel holds a place for a cgroup that no known container has. */
  | 'kernel-stray'
  | 'kernel-untold'
  /** No difference by itself: a label that was changed while the pod runs. */
  | 'label-changed'
  /** No difference by itself: there was no room for all that the agent knows. */
  | 'agent-omitted';

export interface Difference {
  readonly kind: DifferenceKind;
  /** `namespace/name (id)` */
  readonly pod?: string;
  /** `name (id)` */
  readonly container?: string;
  /** What differs. */
  readonly field?: string;
  /** What each side says of it; left out by a side that says nothing. */
  readonly cluster?: string;
  readonly agent?: string;
  readonly kernel?: string;
  readonly node?: string;
}

/** Those that say what they have of a field. */
const SIDES = ['cluster', 'agent', 'kernel', 'node'] as const;

/** Names of tenants are as long as they like to be. */
const SHOWN_CHARACTERS = 300;

/** Whether two looks found the same. */
export function differenceKey(difference: Difference): string {
  const { kind, pod, container, field } = difference;
  return JSON.stringify([kind, pod, container, field, ...SIDES.map((side) => difference[side])]);
}

/** The difference as a sentence on one line, safe to print. */
export function differenceText(difference: Difference): string {
  const { kind, field = '' } = difference;
  const pod = shown(difference.pod);
  const container = shown(difference.container);
  switch (kind) {
    case 'pod-missing':
      return `pod ${pod} is missing from the agent cache`;
    case 'pod-unexpected':
      return `unexpected pod ${pod} found in the agent cache`;
    case 'pod-field':
      return `pod ${pod}: ${mismatch(difference)}`;
    case 'container-missing':
      return `pod ${pod}: missing container ${container} in the agent cache`;
    case 'container-unexpected':
      return `pod ${pod}: container ${container} is only in the agent cache`;
    case 'container-field':
    case 'kernel-field':
      return `pod ${pod}: container ${container}: ${mismatch(difference)}`;
    case 'kernel-missing':
      return `pod ${pod}: container ${container}: the kernel does not hold it, so what it starts is neither checked nor learned`;
    case 'kernel-unexpected':
      return `pod ${pod}: container ${container}: the kernel holds it, and the agent leaves it alone`;
    case 'kernel-no-namespace':
      return `pod ${pod}: container ${container}: the kernel does not find it by its mount namespace, so a process of it that leaves its cgroup is not checked`;
    case 'kernel-no-list':
      return `pod ${pod}: container ${container}: the kernel has no list for it, so it may start nothing`;
    case 'kernel-stray':
      return `the kernel holds ${shown(difference.kernel)}, which belongs to no container that the agent knows`;
    case 'kernel-untold':
      return `what the kernel holds is not known: ${shown(difference.agent)}`;
    case 'label-changed':
      return `pod ${pod}: label ${quote(field)} was changed after the pod was made: ${sides(difference)}`;
    case 'agent-omitted':
      return `pod ${pod}: the agent had no room for ${shown(difference.agent)} of its labels and containers`;
  }
}

function mismatch(difference: Difference): string {
  return `${quote(difference.field ?? '')} mismatch: ${sides(difference)}`;
}

function sides(difference: Difference): string {
  return SIDES.flatMap((side) => {
    const value = difference[side];
    return value === undefined ? [] : [`${side}=${quote(value)}`];
  }).join(', ');
}

/** A text of unknown origin, so that it can stand in a line. */
export function shown(text = ''): string {
  const cut = text.slice(0, SHOWN_CHARACTERS);
  return escapeUnprintable(cut) + (cut.length < text.length ? '…' : '');
}

/** How a pod is named in differences. */
export function podLabel(pod: {
  readonly namespace: string;
  readonly name: string;
  readonly id: string;
}): string {
  return `${pod.namespace}/${pod.name} (${pod.id})`;
}

/** How a container is named in differences. */
export function containerLabel({ name, id }: { readonly name: string; readonly id: string }): string {
  return `${name} (${id})`;
}
