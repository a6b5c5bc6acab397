import type { PayloadItem } from '../vm/guest-initramfs.ts';
import { HOST_ADDRESS } from './cluster-network.ts';

/** Where the node finds what the host gives it. */
const DIRECTORY = '/run/payload/node';
export const SUPERVISOR = `${DIRECTORY}/supervisor.mjs`;
export const KUBELET = `${DIRECTORY}/kubelet`;
export const KUBELET_CONFIG = `${DIRECTORY}/kubelet.json`;
export const KUBECONFIG = `${DIRECTORY}/kubeconfig`;
/** Where a containerd is that is to be used instead of Debian's; see containerd-binaries.ts. */
export const CONTAINERD_DIRECTORY = `${DIRECTORY}/containerd`;
export const STATIC_PODS = '/etc/kubernetes/manifests';
const CA = `${DIRECTORY}/ca.crt`;
const CERTIFICATE = `${DIRECTORY}/kubelet.crt`;
const KEY = `${DIRECTORY}/kubelet.key`;

export const NODE_NAME = 'node1';
export const CLUSTER_DOMAIN = 'cluster.local';
/** Where the node's supervisor answers, see guest-node.ts. */
export const CONTROL_PORT = 9_000;

/** What a kubelet proves itself with, and whom it believes. */
export interface KubeletCredentials {
  /** The authority of who may ask it. */
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
  /** How it reaches the API server, as JSON. */
  readonly kubeconfig: string;
}

/**
 * The node's files: kubelet, its configuration, and the program that starts it.
 *
 * @param containerd a directory with the containerd that is to run there; undefined for Debian's
 */
export function nodeFiles(
  kubelet: string,
  containerd: string | undefined,
  supervisor: Uint8Array,
  credentials: KubeletCredentials,
): readonly PayloadItem[] {
  return [
    ...(containerd === undefined ? [] : [{ path: CONTAINERD_DIRECTORY, source: containerd }]),
    { path: KUBELET, source: kubelet, mode: 0o755 },
    { path: SUPERVISOR, source: supervisor },
    { path: KUBELET_CONFIG, source: Buffer.from(JSON.stringify(kubeletConfiguration())) },
    { path: KUBECONFIG, source: Buffer.from(credentials.kubeconfig), mode: 0o600 },
    { path: CA, source: Buffer.from(credentials.authority) },
    { path: CERTIFICATE, source: Buffer.from(credentials.certificate) },
    { path: KEY, source: Buffer.from(credentials.key), mode: 0o600 },
  ];
}

function kubeletConfiguration(): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    // The guest has no systemd.
    cgroupDriver: 'cgroupfs',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: CA },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: CERTIFICATE,
    tlsPrivateKeyFile: KEY,
    clusterDomain: CLUSTER_DOMAIN,
    clusterDNS: [HOST_ADDRESS],
    resolvConf: '/etc/resolv.conf',
    failSwapOn: false,
    staticPodPath: STATIC_PODS,
    // The default keeps fifty pods waiting for each other's events.
    kubeAPIQPS: 50,
    kubeAPIBurst: 100,
    registryPullQPS: 0,
    imageGCHighThresholdPercent: 100,
    // Pods stay when the disk is full: what the product does then is the question.
    evictionHard: { 'memory.available': '50Mi' },
    // What a pod's volume is made of changes at once for a test that waits for it.
    syncFrequency: '10s',
    configMapAndSecretChangeDetectionStrategy: 'Watch',
  };
}
