/** What the host tells a guest of what runs beside it, as JSON in {@link SCENE_FILE}. */
export interface Scene {
  readonly apiPort: number;
  readonly collectorPort: number;
  readonly collectorMetricsPort: number;
}

const PAYLOAD = '/run/payload/node';
export const SCENE_FILE = `${PAYLOAD}/scene.json`;
/** A kubeconfig of the agent's service account, of the debugger's, and of an administrator. */
export const AGENT_KUBECONFIG = `${PAYLOAD}/agent.kubeconfig`;
export const DEBUGGER_KUBECONFIG = `${PAYLOAD}/debugger.kubeconfig`;
export const ADMIN_KUBECONFIG = `${PAYLOAD}/admin.kubeconfig`;
/** Certificates of the agent, of a controller and of the debugger, each `tls.crt`, `tls.key` and `ca.crt`. */
export const AGENT_CERTIFICATES = `${PAYLOAD}/agent-certificates`;
export const CONTROLLER_CERTIFICATES = `${PAYLOAD}/controller-certificates`;
export const DEBUGGER_CERTIFICATES = `${PAYLOAD}/debugger-certificates`;
/** What the agent proves itself with to the collector. */
export const COLLECTOR_CERTIFICATES = `${PAYLOAD}/collector-certificates`;

/** The bundled debugger, and the agent's addon, by which a test opens what the kernel holds. */
export const DEBUGGER_DIRECTORY = '/run/payload/debugger';
export const DEBUGGER_PROGRAM = `${DEBUGGER_DIRECTORY}/debugger.mjs`;
export const ADDON = '/run/payload/agent/enforcer_native.node';

export const AGENT_NAMESPACE = 'runtime-enforcer';
export const AGENT_POD = 'agent-x';
export const NODE_NAME = 'guest-1';
