import { readFile } from 'node:fs/promises';
import { type ApiClient, apiClient } from './api-client.ts';
import { pooledConfig } from './pooled-config.ts';

const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The cluster that a program runs in or is pointed at. */
export interface ClusterAccess {
  readonly client: ApiClient;
  /** The program's own. */
  readonly namespace: string;
  close(): Promise<void>;
}

/**
 * Opens the cluster of a kubeconfig file, or without one that of the pod.
 *
 * @param given.podNamespace what POD_NAMESPACE says; without it the pod's service account tells
 * @throws Error telling what is missing
 */
export async function clusterAccess(given: {
  readonly kubeconfig?: string;
  readonly podNamespace?: string;
}): Promise<ClusterAccess> {
  const { kubeconfig, podNamespace } = given;
  const config = pooledConfig((empty) => {
    if (kubeconfig === undefined) empty.loadFromCluster();
    else empty.loadFromFile(kubeconfig);
  });
  return {
    client: apiClient(config),
    namespace: podNamespace ?? (await ownNamespace()),
    close: async () => await config.close(),
  };
}

async function ownNamespace(): Promise<string> {
  try {
    return (await readFile(NAMESPACE_FILE, 'utf8')).trim();
  } catch (cause) {
    throw new Error(
      `the program's own namespace is not known: ${NAMESPACE_FILE} cannot be read; outside of a cluster set POD_NAMESPACE`,
      { cause },
    );
  }
}
