import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';

/** What the controller needs to know of the pod of an agent. */
export interface AgentPod {
  readonly uid: string;
  readonly name: string;
  readonly nodeName: string;
  /** Absent until it runs. */
  readonly address: string | undefined;
  readonly isDeleting: boolean;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** Undefined for a pod that no node has, or that has ended. */
export function agentPodOf({ metadata, spec, status }: KubeObject): AgentPod | undefined {
  const { uid = '', name, deletionTimestamp, creationTimestamp } = metadata;
  const nodeName = isJsonObject(spec) ? spec['nodeName'] : undefined;
  if (typeof nodeName !== 'string' || nodeName === '' || isFinished(status)) return undefined;
  const address = isJsonObject(status) ? status['podIP'] : undefined;
  return {
    uid,
    name,
    nodeName,
    address: typeof address === 'string' && address !== '' ? address : undefined,
    isDeleting: deletionTimestamp !== undefined,
    createdAt: Date.parse(String(creationTimestamp)) || 0,
  };
}

/** Whether nothing of a pod runs any more. */
export function isFinished(status: unknown): boolean {
  const phase = isJsonObject(status) ? status['phase'] : undefined;
  return phase === 'Succeeded' || phase === 'Failed';
}
