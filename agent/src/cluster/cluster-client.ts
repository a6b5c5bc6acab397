import { type ApiClient, apiClient } from '@runtime-enforcer/kube/api-client';
import { pooledConfig } from '@runtime-enforcer/kube/pooled-config';
import { CommandError } from '../commands/command-error.ts';

/** The API server as this agent reaches it. */
export interface ClusterClient {
  readonly client: ApiClient;
  close(): Promise<void>;
}

/**
 * @param kubeconfig a file; without it the service account of the pod
 * @throws CommandError if nothing there says where the API server is
 */
export function openClusterClient(kubeconfig: string | undefined): ClusterClient {
  try {
    const pool = pooledConfig((config) => {
      if (kubeconfig === undefined) config.loadFromCluster();
      else config.loadFromFile(kubeconfig);
    });
    if (pool.config.getCurrentCluster() === null)
      throw new Error('it names no cluster for its current context');
    return { client: apiClient(pool), close: () => pool.close() };
  } catch (cause) {
    const from = kubeconfig === undefined ? 'the service account of this pod' : `--kubeconfig ${kubeconfig}`;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(`${from} does not tell how to reach the API server: ${reason}`, { cause });
  }
}
