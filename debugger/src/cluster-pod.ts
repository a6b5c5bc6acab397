import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';

/** A container as the API server has it. */
export interface ClusterContainer {
  /** Without the runtime's prefix. */
  readonly id: string;
  readonly name: string;
  readonly isRunning: boolean;
}

/** A pod that is on a node, as the API server has it. */
export interface ClusterPod {
  /** What the runtime knows it by: its uid, or of a static pod what kubelet made of its file. */
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly nodeName: string;
  readonly phase: string;
  readonly labels: ReadonlyMap<string, string>;
  /** Those that have an id, and of each one that was started again the one before. */
  readonly containers: readonly ClusterContainer[];
  /** Absent until it has one. */
  readonly address: string | undefined;
  readonly isDeleting: boolean;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

const STATIC_POD_ANNOTATION = 'kubernetes.io/config.mirror';
const CONTAINER_LISTS = ['initContainerStatuses', 'containerStatuses', 'ephemeralContainerStatuses'] as const;

/** Undefined for a pod that no node has. */
export function clusterPodOf({ metadata, spec, status }: KubeObject): ClusterPod | undefined {
  const nodeName = textAt(spec, 'nodeName');
  if (nodeName === '') return undefined;
  const address = textAt(status, 'podIP');
  return {
    id: metadata.annotations?.[STATIC_POD_ANNOTATION] ?? metadata.uid ?? '',
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    nodeName,
    phase: textAt(status, 'phase'),
    labels: new Map(Object.entries(metadata.labels ?? {})),
    containers: CONTAINER_LISTS.flatMap((list) => containersOf(isJsonObject(status) ? status[list] : [])),
    address: address === '' ? undefined : address,
    isDeleting: metadata['deletionTimestamp'] !== undefined,
    createdAt: Date.parse(String(metadata['creationTimestamp'])) || 0,
  };
}

function containersOf(statuses: unknown): ClusterContainer[] {
  if (!Array.isArray(statuses)) return [];
  return (statuses as unknown[]).filter(isJsonObject).flatMap((status) => {
    const { name, state, lastState } = status;
    if (typeof name !== 'string') return [];
    const isRunning = isJsonObject(state) && isJsonObject(state['running']);
    const before = isJsonObject(lastState) ? lastState['terminated'] : undefined;
    return [
      { name, isRunning, id: idOf(status) },
      { name, isRunning: false, id: idOf(before) },
    ].filter(({ id }) => id !== '');
  });
}

/** `containerd://ID`; empty where there is none yet. */
function idOf(status: unknown): string {
  const text = textAt(status, 'containerID');
  return text.slice(text.indexOf('://') + 1).replace(/^\/\//, '');
}

function textAt(json: unknown, field: string): string {
  const value = isJsonObject(json) ? json[field] : undefined;
  return typeof value === 'string' ? value : '';
}
