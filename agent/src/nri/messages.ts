import protobuf from 'protobufjs/light.js';
import { descriptor } from './gen/descriptor.ts';

/** A pod as the runtime describes it; labels are those the sandbox was created with. */
export interface NriPodSandbox {
  id: string;
  name: string;
  uid: string;
  namespace: string;
  labels: ReadonlyMap<string, string>;
  annotations: ReadonlyMap<string, string>;
  /** Parent of the pod's cgroups, in the form of the runtime's cgroup driver. */
  cgroupParent: string;
  runtimeHandler: string;
  /** Process id of the sandbox; 0 if the runtime does not tell. */
  pid: number;
}

/** A container as the runtime describes it. All texts come from tenants. */
export interface NriContainer {
  id: string;
  podSandboxId: string;
  name: string;
  state: NriContainerState;
  labels: ReadonlyMap<string, string>;
  annotations: ReadonlyMap<string, string>;
  args: readonly string[];
  /** `slice:prefix:name` (systemd driver) or an absolute path (cgroupfs driver). */
  cgroupsPath: string;
  /** Process id of the container's first process; 0 before it exists. */
  pid: number;
  /** Image reference; empty from runtimes older than NRI 0.12. */
  image: string;
}

const CONTAINER_STATES = ['unknown', 'created', 'paused', 'running', 'stopped'] as const;
export type NriContainerState = (typeof CONTAINER_STATES)[number];

/** Service and event names and numbers of NRI's v1alpha1 API. */
export const RUNTIME_SERVICE = 'nri.pkg.api.v1alpha1.Runtime';
export const PLUGIN_SERVICE = 'nri.pkg.api.v1alpha1.Plugin';
export const EVENT_START_CONTAINER = 6;
export const EVENT_REMOVE_CONTAINER = 11;

/** The bit of an event in the mask a plugin subscribes with. */
export function eventMask(...events: readonly number[]): number {
  return events.reduce((mask, event) => mask | (1 << (event - 1)), 0);
}

interface EntryMessage {
  key: string;
  value: string;
}

interface PodSandboxMessage {
  id: string;
  name: string;
  uid: string;
  namespace: string;
  labels: EntryMessage[];
  annotations: EntryMessage[];
  runtimeHandler: string;
  linux: { cgroupParent: string } | null;
  pid: number;
}

interface ContainerMessage {
  id: string;
  podSandboxId: string;
  name: string;
  state: number;
  labels: EntryMessage[];
  annotations: EntryMessage[];
  args: string[];
  linux: { cgroupsPath: string } | null;
  pid: number;
  image: { name: string } | null;
}

/** What every container event carries. */
export interface PodAndContainerMessage {
  pod: PodSandboxMessage | null;
  container: ContainerMessage | null;
}

/** Encoder and decoder of one message type. Fields that were not sent have their default value. */
export interface Codec<T> {
  encode(message: T): Uint8Array;
  /** Throws an Error that names the message type if `bytes` are not such a message. */
  decode(bytes: Uint8Array): T;
}

/** What the runtime does when the plugin answers too late or is lost; known to NRI 0.12.5 and later. */
export interface NriFailurePolicy {
  failRequest: boolean;
  keepConnected: boolean;
}

export interface NriCodecs {
  request: Codec<{ service: string; method: string; payload: Uint8Array; timeoutNano: number }>;
  response: Codec<{ status: { code: number; message: string } | null; payload: Uint8Array }>;
  registerPlugin: Codec<{ pluginName: string; pluginIdx: string }>;
  configure: Codec<{
    runtimeName: string;
    runtimeVersion: string;
    registrationTimeout: number;
    requestTimeout: number;
  }>;
  configureResponse: Codec<{ events: number; failurePolicy: NriFailurePolicy | null }>;
  synchronize: Codec<{ pods: PodSandboxMessage[]; containers: ContainerMessage[]; more: boolean }>;
  synchronizeResponse: Codec<{ more: boolean }>;
  stateChange: Codec<{ event: number } & PodAndContainerMessage>;
  startContainer: Codec<PodAndContainerMessage>;
  removeContainer: Codec<PodAndContainerMessage>;
}

let codecs: NriCodecs | undefined;

/** The message codecs, made at the first call. */
export function nriCodecs(): NriCodecs {
  codecs ??= createCodecs();
  return codecs;
}

function createCodecs(): NriCodecs {
  const root = protobuf.Root.fromJSON(descriptor);
  root.resolveAll();
  const codec = <T extends object>(name: string): Codec<T> => {
    const type = root.lookupType(name);
    return {
      encode: (message) => type.encode(type.fromObject(message)).finish(),
      decode(bytes) {
        try {
          const message = type.decode(bytes);
          return type.toObject(message, { defaults: true, arrays: true, longs: Number }) as T;
        } catch (error) {
          throw new Error(`bytes are not a valid ${type.name} message`, { cause: error });
        }
      },
    };
  };
  const nri = 'nri.pkg.api.v1alpha1';
  return {
    request: codec('ttrpc.Request'),
    response: codec('ttrpc.Response'),
    registerPlugin: codec(`${nri}.RegisterPluginRequest`),
    configure: codec(`${nri}.ConfigureRequest`),
    configureResponse: codec(`${nri}.ConfigureResponse`),
    synchronize: codec(`${nri}.SynchronizeRequest`),
    synchronizeResponse: codec(`${nri}.SynchronizeResponse`),
    stateChange: codec(`${nri}.StateChangeEvent`),
    startContainer: codec(`${nri}.StartContainerRequest`),
    removeContainer: codec(`${nri}.RemoveContainerRequest`),
  };
}

export function podFromMessage(message: PodSandboxMessage): NriPodSandbox {
  const { id, name, uid, namespace, runtimeHandler, pid } = message;
  return {
    id,
    name,
    uid,
    namespace,
    runtimeHandler,
    pid,
    labels: mapFromEntries(message.labels),
    annotations: mapFromEntries(message.annotations),
    cgroupParent: message.linux?.cgroupParent ?? '',
  };
}

export function podToMessage(pod: NriPodSandbox): PodSandboxMessage {
  const { id, name, uid, namespace, runtimeHandler, pid } = pod;
  return {
    id,
    name,
    uid,
    namespace,
    runtimeHandler,
    pid,
    labels: entriesFromMap(pod.labels),
    annotations: entriesFromMap(pod.annotations),
    linux: { cgroupParent: pod.cgroupParent },
  };
}

export function containerFromMessage(message: ContainerMessage): NriContainer {
  const { id, podSandboxId, name, args, pid } = message;
  return {
    id,
    podSandboxId,
    name,
    args,
    pid,
    state: CONTAINER_STATES[message.state] ?? 'unknown',
    labels: mapFromEntries(message.labels),
    annotations: mapFromEntries(message.annotations),
    cgroupsPath: message.linux?.cgroupsPath ?? '',
    image: message.image?.name ?? '',
  };
}

export function containerToMessage(container: NriContainer): ContainerMessage {
  const { id, podSandboxId, name, args, pid } = container;
  return {
    id,
    podSandboxId,
    name,
    args: [...args],
    pid,
    state: CONTAINER_STATES.indexOf(container.state),
    labels: entriesFromMap(container.labels),
    annotations: entriesFromMap(container.annotations),
    linux: { cgroupsPath: container.cgroupsPath },
    image: { name: container.image },
  };
}

function mapFromEntries(entries: readonly EntryMessage[]): ReadonlyMap<string, string> {
  return new Map(entries.map(({ key, value }) => [key, value]));
}

function entriesFromMap(map: ReadonlyMap<string, string>): EntryMessage[] {
  return Array.from(map, ([key, value]) => ({ key, value }));
}
