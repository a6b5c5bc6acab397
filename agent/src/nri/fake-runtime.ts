import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { createNriConnection } from './connection.ts';
import type { NriConnection } from './connection.ts';
import {
  containerToMessage,
  EVENT_REMOVE_CONTAINER,
  EVENT_START_CONTAINER,
  nriCodecs,
  PLUGIN_SERVICE,
  podToMessage,
  RUNTIME_SERVICE,
} from './messages.ts';
import type { NriContainer, NriFailurePolicy, NriPodSandbox } from './messages.ts';
import { MUX_MAX_PAYLOAD_BYTES, PLUGIN_CONNECTION_ID, RUNTIME_CONNECTION_ID } from './mux.ts';
import { TtrpcCode, TtrpcStatusError } from './ttrpc-status.ts';

/**
 * Test support: the container runtime's end of NRI, for tests and benchmarks that need no container.
 * It behaves as containerd does, down to hanging up on a plugin that answers late.
 */
export interface FakeRuntime {
  readonly socketPath: string;
  /** Waits for the next plugin and takes its registration; rejects after `timeoutMs`. */
  accept(timeoutMs?: number): Promise<FakeRuntimePlugin>;
  /** Waits for the next plugin and configures and synchronizes it as well. */
  serve(pods?: readonly NriPodSandbox[], containers?: readonly NriContainer[]): Promise<FakeRuntimePlugin>;
  /** Hangs up on all plugins and removes the socket. */
  close(): Promise<void>;
}

/** How a container event is carried: by the call of its own (NRI 0.12 on) or by the older one. */
export type EventCarrier = 'dedicated' | 'StateChange';

/** The runtime's view of one registered plugin. Calls reject as the plugin's error replies say. */
export interface FakeRuntimePlugin {
  readonly name: string;
  readonly index: string;
  readonly socket: Socket;
  /** Resolves with the reason when the connection has ended. */
  readonly closed: Promise<Error>;
  /** Returns what the plugin subscribes to, and what it wants done when it fails. */
  configure(): Promise<{ events: number; failurePolicy: NriFailurePolicy | null }>;
  /** Sends the state in `parts` messages. */
  synchronize(
    pods: readonly NriPodSandbox[],
    containers: readonly NriContainer[],
    parts?: number,
  ): Promise<void>;
  startContainer(pod: NriPodSandbox, container: NriContainer, carrier?: EventCarrier): Promise<void>;
  removeContainer(pod: NriPodSandbox, container: NriContainer, carrier?: EventCarrier): Promise<void>;
  /** Any call of the Plugin service, with an encoded message; `timeoutMs` defaults to the request timeout. */
  call(method: string, payload: Uint8Array, timeoutMs?: number): Promise<Uint8Array>;
  /** Hangs up. */
  hangUp(): void;
}

export interface FakeRuntimeOptions {
  socketPath: string;
  name?: string;
  version?: string;
  /** What Configure tells; 0 is what a runtime older than NRI 0.8 sends. */
  requestTimeoutMs?: number;
  /** What is really waited for an answer, if it differs from what Configure tells. */
  patienceMs?: number;
  /** Gets each new connection first; when it returns true the connection is left to it. */
  takeOver?: (socket: Socket) => boolean;
}

/** Listens on a socket of its own, which must not exist yet. */
export async function startFakeRuntime(options: FakeRuntimeOptions): Promise<FakeRuntime> {
  const { socketPath } = options;
  const arrived: FakeRuntimePlugin[] = [];
  const waiting: ((plugin: FakeRuntimePlugin) => void)[] = [];
  const sockets = new Set<Socket>();

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    if (options.takeOver?.(socket) === true) return;
    acceptPlugin(socket, options, (plugin) => {
      const waiter = waiting.shift();
      if (waiter === undefined) arrived.push(plugin);
      else waiter(plugin);
    });
  });
  const listening = Promise.withResolvers<undefined>();
  server.once('error', listening.reject);
  server.listen(socketPath, () => listening.resolve(undefined));
  await listening.promise;

  const accept = async (timeoutMs = 5_000): Promise<FakeRuntimePlugin> => {
    const ready = arrived.shift();
    if (ready !== undefined) return ready;
    const { promise, resolve, reject } = Promise.withResolvers<FakeRuntimePlugin>();
    const timer = setTimeout(() => {
      waiting.splice(waiting.indexOf(resolve), 1);
      reject(new Error(`no plugin registered at ${socketPath} within ${timeoutMs} ms`));
    }, timeoutMs);
    waiting.push(resolve);
    return promise.finally(() => clearTimeout(timer));
  };

  return {
    socketPath,
    accept,
    async serve(pods = [], containers = []) {
      const plugin = await accept();
      await plugin.configure();
      await plugin.synchronize(pods, containers);
      return plugin;
    },
    async close() {
      const closed = Promise.withResolvers<undefined>();
      server.close(() => closed.resolve(undefined));
      for (const socket of sockets) socket.destroy();
      await closed.promise;
      await rm(socketPath, { force: true });
    },
  };
}

function acceptPlugin(
  socket: Socket,
  options: FakeRuntimeOptions,
  onRegistered: (plugin: FakeRuntimePlugin) => void,
): void {
  const connection = createNriConnection({
    socket,
    servedId: RUNTIME_CONNECTION_ID,
    calledId: PLUGIN_CONNECTION_ID,
    laterFrameBytes: MUX_MAX_PAYLOAD_BYTES,
    onMalformed: (reason) => connection.close(new Error(`the plugin sent a malformed frame: ${reason}`)),
    handle: (call) => {
      if (call.service !== RUNTIME_SERVICE || call.method !== 'RegisterPlugin') {
        const message = `${call.service}/${call.method} is not implemented`;
        return Promise.reject(new TtrpcStatusError(TtrpcCode.unimplemented, message));
      }
      const { pluginName, pluginIdx } = nriCodecs().registerPlugin.decode(call.payload);
      onRegistered(createPlugin({ socket, connection, name: pluginName, index: pluginIdx, options }));
      return Promise.resolve(new Uint8Array());
    },
  });
}

function createPlugin(parts: {
  socket: Socket;
  connection: NriConnection;
  name: string;
  index: string;
  options: FakeRuntimeOptions;
}): FakeRuntimePlugin {
  const { socket, connection, name, index, options } = parts;
  const requestTimeoutMs = options.requestTimeoutMs ?? 2_000;
  const patienceMs = options.patienceMs ?? (requestTimeoutMs > 0 ? requestTimeoutMs : 2_000);

  const call: FakeRuntimePlugin['call'] = async (method, payload, timeoutMs = patienceMs) => {
    try {
      return await connection.client.call(PLUGIN_SERVICE, method, payload, timeoutMs);
    } catch (error) {
      const late = error instanceof TtrpcStatusError && error.code === TtrpcCode.deadlineExceeded;
      if (late) connection.close(new Error(`the plugin was dropped: ${error.message}`));
      throw error;
    }
  };
  const event = async (
    method: 'StartContainer' | 'RemoveContainer',
    subject: { pod: NriPodSandbox; container: NriContainer },
    carrier: EventCarrier,
  ): Promise<void> => {
    const message = { pod: podToMessage(subject.pod), container: containerToMessage(subject.container) };
    if (carrier === 'dedicated') {
      await call(method, nriCodecs().startContainer.encode(message));
    } else {
      const number = method === 'StartContainer' ? EVENT_START_CONTAINER : EVENT_REMOVE_CONTAINER;
      await call('StateChange', nriCodecs().stateChange.encode({ event: number, ...message }));
    }
  };

  return {
    name,
    index,
    socket,
    closed: connection.closed,
    call,
    async configure() {
      const request = nriCodecs().configure.encode({
        runtimeName: options.name ?? 'fake-runtime',
        runtimeVersion: options.version ?? 'v0',
        registrationTimeout: 5_000,
        requestTimeout: requestTimeoutMs,
      });
      return nriCodecs().configureResponse.decode(await call('Configure', request));
    },
    async synchronize(pods, containers, count = 1) {
      try {
        for (let part = 0; part < count; part += 1) {
          const more = part < count - 1;
          const request = nriCodecs().synchronize.encode({
            pods: sliceOf(pods, part, count).map(podToMessage),
            containers: sliceOf(containers, part, count).map(containerToMessage),
            more,
          });
          const reply = nriCodecs().synchronizeResponse.decode(await call('Synchronize', request));
          if (reply.more !== more) throw new Error('the plugin does not handle split sync requests');
        }
      } catch (cause) {
        connection.close(new Error('the plugin was dropped: it could not be synchronized', { cause }));
        throw cause;
      }
    },
    startContainer: (pod, container, carrier = 'StateChange') =>
      event('StartContainer', { pod, container }, carrier),
    removeContainer: (pod, container, carrier = 'StateChange') =>
      event('RemoveContainer', { pod, container }, carrier),
    hangUp: () => connection.close(new Error('the fake runtime hung up')),
  };
}

function sliceOf<T>(items: readonly T[], part: number, parts: number): readonly T[] {
  const size = Math.ceil(items.length / parts);
  return items.slice(part * size, (part + 1) * size);
}
