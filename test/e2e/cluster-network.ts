import { execFileSync } from 'node:child_process';

/** The host, as the node sees it, where the control plane is. */
export const HOST_ADDRESS = '172.30.0.1';
export const NODE_ADDRESS = '172.30.0.10';
export const POD_NETWORK = '10.244.0.0/24';
/** The address of the Service `kubernetes`, which every pod asks. */
export const API_SERVICE_ADDRESS = '10.96.0.1';
export const NETWORK_PREFIX_LENGTH = 24;
/** The host's end of the node's network card. */
export const TAP = 'tap0';

const BRIDGE = 'br0';

/**
 * Connects host and node in the network namespace of this process, which must be a fresh one: a bridge with a tap
 * device for the node, a route to the pods, and the API's Service address on the loopback interface, so that pods
 * reach the API server without kube-proxy. All of it goes away with the last process of the namespace.
 */
export function connectNode(): void {
  const ip = (...args: readonly string[]): void => void execFileSync('ip', args);
  ip('link', 'set', 'lo', 'up');
  ip('addr', 'add', `${API_SERVICE_ADDRESS}/32`, 'dev', 'lo');
  ip('link', 'add', BRIDGE, 'type', 'bridge');
  ip('addr', 'add', `${HOST_ADDRESS}/${NETWORK_PREFIX_LENGTH}`, 'dev', BRIDGE);
  ip('link', 'set', BRIDGE, 'up');
  ip('tuntap', 'add', TAP, 'mode', 'tap');
  ip('link', 'set', TAP, 'master', BRIDGE, 'up');
  ip('route', 'add', POD_NETWORK, 'via', NODE_ADDRESS);
}
