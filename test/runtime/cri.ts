import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { CRI_PROTO } from './cri-proto.ts';

/** containerd's socket, where a guest has it. */
export const CRI_ENDPOINT = 'unix:///run/containerd/containerd.sock';

const SERVICE = 'runtime.v1.RuntimeService';
const CALL_BUDGET_MS = 60_000;

export type ContainerState =
  'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN';

export interface ContainerStatus {
  readonly id: string;
  readonly state: ContainerState;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
}

/** What a request and a response of each call hold, as far as the tests use it. Fields keep protobuf's camel case. */
export interface CriCalls {
  Version: [request: object, response: { runtimeName: string; runtimeVersion: string }];
  RunPodSandbox: [
    request: { config: SandboxConfig; runtimeHandler: string },
    response: { podSandboxId: string },
  ];
  StopPodSandbox: [request: { podSandboxId: string }, response: object];
  RemovePodSandbox: [request: { podSandboxId: string }, response: object];
  ListPodSandbox: [request: object, response: { items: { id: string }[] }];
  CreateContainer: [
    request: { podSandboxId: string; config: ContainerConfig; sandboxConfig: SandboxConfig },
    response: { containerId: string },
  ];
  StartContainer: [request: { containerId: string }, response: object];
  StopContainer: [request: { containerId: string; timeout: number }, response: object];
  RemoveContainer: [request: { containerId: string }, response: object];
  ListContainers: [request: object, response: { containers: { id: string; state: ContainerState }[] }];
  ContainerStatus: [
    request: { containerId: string; verbose?: boolean },
    response: { status: ContainerStatus; info: Readonly<Record<string, string>> },
  ];
  ExecSync: [
    request: { containerId: string; cmd: readonly string[]; timeout: number },
    response: { stdout: Buffer; stderr: Buffer; exitCode: number },
  ];
}

export type NamespaceMode = 'POD' | 'CONTAINER' | 'NODE';

export interface NamespaceOptions {
  readonly network: NamespaceMode;
  readonly pid: NamespaceMode;
  readonly ipc: NamespaceMode;
}

export interface SandboxConfig {
  readonly metadata: { readonly name: string; readonly uid: string; readonly namespace: string };
  readonly hostname: string;
  readonly logDirectory: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly linux: {
    readonly cgroupParent: string;
    readonly securityContext: { readonly namespaceOptions: NamespaceOptions; readonly privileged: boolean };
  };
}

export interface MountConfig {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly readonly?: boolean;
  readonly propagation?: 'PROPAGATION_PRIVATE' | 'PROPAGATION_HOST_TO_CONTAINER';
}

export interface ContainerConfig {
  readonly metadata: { readonly name: string; readonly attempt: number };
  readonly image: { readonly image: string };
  readonly command: readonly string[];
  readonly envs: readonly { readonly key: string; readonly value: Uint8Array }[];
  readonly mounts: readonly MountConfig[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly logPath: string;
  readonly linux: {
    readonly securityContext: {
      readonly capabilities: { readonly addCapabilities: readonly string[] };
      readonly privileged: boolean;
      readonly namespaceOptions: NamespaceOptions;
      readonly runAsUser: { readonly value: number };
    };
  };
}

/** A container runtime behind its CRI socket. */
export interface Cri {
  /**
   * @param budgetMs after which the call fails
   * @throws CriError with the runtime's own words
   */
  call<Name extends keyof CriCalls>(
    name: Name,
    request: CriCalls[Name][0],
    budgetMs?: number,
  ): Promise<CriCalls[Name][1]>;
  close(): void;
}

/** A call that the runtime refused or did not answer. */
export class CriError extends Error {
  /** The gRPC status code. */
  readonly code: number;

  constructor(call: string, cause: ServiceError) {
    super(`${call}: ${cause.details}`, { cause });
    this.name = 'CriError';
    this.code = cause.code;
  }
}

/** Opens a client; it connects with its first call and again whenever the runtime has been restarted. */
export function openCri(endpoint: string = CRI_ENDPOINT): Cri {
  const { root } = protobuf.parse(CRI_PROTO, { keepCase: false });
  const { methods } = root.lookupService(SERVICE);
  const client = new Client(endpoint, credentials.createInsecure(), {
    'grpc.initial_reconnect_backoff_ms': 50,
    'grpc.max_reconnect_backoff_ms': 500,
    'grpc.max_receive_message_length': 64 * 1024 * 1024,
  });
  return {
    call: (name, request, budgetMs = CALL_BUDGET_MS) => {
      const method = methods[name];
      if (method === undefined) throw new Error(`${SERVICE} has no call ${name}`);
      const requestType = root.lookupType(`runtime.v1.${method.requestType}`);
      const responseType = root.lookupType(`runtime.v1.${method.responseType}`);
      const encode = (value: object): Buffer =>
        Buffer.from(requestType.encode(requestType.fromObject(value)).finish());
      const decode = (bytes: Buffer): CriCalls[typeof name][1] =>
        responseType.toObject(responseType.decode(bytes), {
          defaults: true,
          enums: String,
          longs: Number,
        });
      return new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          `/${SERVICE}/${name}`,
          encode,
          decode,
          request,
          new Metadata({ waitForReady: true }),
          { deadline: Date.now() + budgetMs },
          (error, response) => {
            if (error !== null) reject(new CriError(name, error));
            else if (response === undefined) reject(new Error(`${name}: an answer without a message`));
            else resolve(response);
          },
        );
      });
    },
    close: () => client.close(),
  };
}
