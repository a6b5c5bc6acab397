import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { type ApiClient, apiClient } from '@runtime-enforcer/kube/api-client';
import { pooledConfig } from '@runtime-enforcer/kube/pooled-config';
import type { ControllerOptions } from './options.ts';

const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The cluster, and who this process is in it. */
export interface ClusterAccess {
  readonly client: ApiClient;
  /** The controller's own. */
  readonly namespace: string;
  /** The pod, or the machine outside of a cluster. */
  readonly host: string;
  /** Different in every process. */
  readonly identity: string;
  close(): Promise<void>;
}

/** @throws Error telling what is missing */
export async function clusterAccess(
  options: Pick<ControllerOptions, 'kubeconfig' | 'podName' | 'podNamespace'>,
): Promise<ClusterAccess> {
  const { kubeconfig, podName, podNamespace } = options;
  const config = pooledConfig((empty) => {
    if (kubeconfig === undefined) empty.loadFromCluster();
    else empty.loadFromFile(kubeconfig);
  });
  const host = podName ?? hostname();
  return {
    client: apiClient(config),
    namespace: podNamespace ?? (await ownNamespace()),
    host,
    identity: `${host}_${randomBytes(8).toString('hex')}`,
    close: async () => await config.close(),
  };
}

async function ownNamespace(): Promise<string> {
  try {
    return (await readFile(NAMESPACE_FILE, 'utf8')).trim();
  } catch (cause) {
    throw new Error(
      `the controller's own namespace is not known: ${NAMESPACE_FILE} cannot be read; outside of a cluster set POD_NAMESPACE`,
      { cause },
    );
  }
}
