import type { Socket } from 'node:net';
import { urgently } from '../event-loop.ts';
import { createNriConnection } from './connection.ts';
import { nriMethodLabel } from './counters.ts';
import type { NriCounters } from './counters.ts';
import {
  acceptRequestTimeout,
  answerBudget,
  DEFAULT_REQUEST_TIMEOUT_MS,
  DeadlineExceededError,
  withDeadline,
} from './deadline.ts';
import type { Logger, NriHandlers, NriRuntime } from './handlers.ts';
import {
  EVENT_REMOVE_CONTAINER,
  EVENT_START_CONTAINER,
  eventMask,
  nriCodecs,
  containerFromMessage,
  podFromMessage,
  PLUGIN_SERVICE,
  RUNTIME_SERVICE,
} from './messages.ts';
import type { NriContainer, NriPodSandbox, PodAndContainerMessage } from './messages.ts';
import { PLUGIN_CONNECTION_ID, RUNTIME_CONNECTION_ID } from './mux.ts';
import { createSynchronizeCollector } from './synchronize.ts';
import type { RuntimeState } from './synchronize.ts';
import type { TtrpcCall } from './ttrpc-server.ts';
import { TtrpcCode, TtrpcStatusError } from './ttrpc-status.ts';

/**
 * Time from connecting to the last part of Synchronize. Runtimes take plugins in one at a time and
 * wait for container starts in flight, so this is much longer than their own registration timeout.
 */
const HANDSHAKE_TIMEOUT_MS = 30_000;

const EMPTY = new Uint8Array();

export interface NriSession {
  /** Resolves when no call waits for its answer. */
  answered(): Promise<void>;
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<Error>;
  close(reason: Error): void;
}

/**
 * Plays the plugin's part on one connected socket: registers, takes Configure and Synchronize, and
 * passes events to the handlers until the connection ends. `onSynchronized` is called when the
 * synchronize handler has succeeded.
 */
export function startNriSession(options: {
  socket: Socket;
  pluginName: string;
  pluginIndex: string;
  handlers: NriHandlers;
  /** Lets the runtime start a container whose answer is late or lost. */
  failOpen: boolean;
  log: Logger;
  counters: NriCounters;
  onSynchronized: () => void;
}): NriSession {
  const { handlers, log, counters } = options;
  const collect = createSynchronizeCollector();
  let runtime: NriRuntime = { name: '', version: '', requestTimeoutMs: DEFAULT_REQUEST_TIMEOUT_MS };
  // Events wait for this: a container must not be bound or forgotten before the state it belongs to is known.
  let synchronized: Promise<void> | undefined;
  /** Calls that have not been answered, and who waits for the last of them. */
  let waiting = 0;
  const idle: (() => void)[] = [];

  const configure = (call: TtrpcCall): Uint8Array => {
    const { runtimeName, runtimeVersion, requestTimeout } = nriCodecs().configure.decode(call.payload);
    runtime = {
      name: runtimeName,
      version: runtimeVersion,
      requestTimeoutMs: acceptRequestTimeout(requestTimeout),
    };
    const events = eventMask(EVENT_START_CONTAINER, EVENT_REMOVE_CONTAINER);
    // An answer that is late because all is slow would cost the connection too, and with it every other answer.
    const failurePolicy = { failRequest: !options.failOpen, keepConnected: true };
    return nriCodecs().configureResponse.encode({ events, failurePolicy });
  };

  const synchronize = async (call: TtrpcCall): Promise<Uint8Array> => {
    const state = collect(call.payload);
    if (state === undefined) return nriCodecs().synchronizeResponse.encode({ more: true });
    clearTimeout(handshakeTimer);
    const work = takeOver(state);
    synchronized = work;
    try {
      await withDeadline(budget(call), 'Synchronize takes longer than its budget', () => work);
    } catch (error) {
      if (!(error instanceof DeadlineExceededError)) throw error;
      // The runtime would drop a plugin that answers late or with an error, and synchronize it again
      // with the same outcome. So it gets its answer, and the events that follow wait for the work.
      counters.increment('deadline_exceeded', 'Synchronize');
      log.warn({ containers: state.containers.length, budgetMs: budget(call) }, error.message);
    }
    return EMPTY;
  };

  const takeOver = async ({ pods, containers }: RuntimeState): Promise<void> => {
    try {
      await handlers.synchronize(pods, containers, runtime);
      if (!options.socket.destroyed) options.onSynchronized();
    } catch (cause) {
      // After the error reply, if it is still due: the runtime hangs up by itself only then.
      setImmediate(() =>
        connection.close(new Error('taking over the containers of the runtime failed', { cause })),
      );
      throw cause;
    }
  };

  const startContainer = async (call: TtrpcCall, message: PodAndContainerMessage): Promise<Uint8Array> => {
    const { pod, container } = completeEvent(message, call.method);
    const budgetMs = budget(call);
    const late = `${describe(pod, container)}: no decision within ${budgetMs} ms, so it was not started; the kubelet tries again`;
    await withDeadline(budgetMs, late, async (deadline) => {
      if (synchronized === undefined) throw new Error('StartContainer came before Synchronize');
      await synchronized;
      deadline.throwIfAborted();
      await handlers.startContainer(pod, container, deadline);
    });
    return EMPTY;
  };

  // The container is gone whatever we answer, and a late answer would cost the connection.
  const removeContainer = async (call: TtrpcCall, message: PodAndContainerMessage): Promise<Uint8Array> => {
    const { pod, container } = completeEvent(message, call.method);
    const late = `${describe(pod, container)}: its removal takes longer than its budget`;
    const work = async (): Promise<void> => {
      await synchronized;
      await handlers.removeContainer(pod, container);
    };
    try {
      await withDeadline(budget(call), late, work);
    } catch (error) {
      if (error instanceof DeadlineExceededError)
        counters.increment('deadline_exceeded', nriMethodLabel(call.method));
      log.warn(
        { err: error, pod: pod.name, namespace: pod.namespace, container: container.name },
        'removing a container failed',
      );
    }
    return EMPTY;
  };

  const stateChange = async (call: TtrpcCall): Promise<Uint8Array> => {
    const message = nriCodecs().stateChange.decode(call.payload);
    if (message.event === EVENT_START_CONTAINER) return startContainer(call, message);
    if (message.event === EVENT_REMOVE_CONTAINER) return removeContainer(call, message);
    return EMPTY;
  };

  const dispatch = async (call: TtrpcCall): Promise<Uint8Array> => {
    const method = call.service === PLUGIN_SERVICE ? call.method : '';
    switch (method) {
      case 'Configure':
        return configure(call);
      case 'Synchronize':
        return synchronize(call);
      case 'StateChange':
        return stateChange(call);
      case 'StartContainer':
        return startContainer(call, nriCodecs().startContainer.decode(call.payload));
      case 'RemoveContainer':
        return removeContainer(call, nriCodecs().removeContainer.decode(call.payload));
      case 'Shutdown':
        log.info({ runtime: runtime.name }, 'the container runtime is shutting down');
        return EMPTY;
      default:
        throw new TtrpcStatusError(
          TtrpcCode.unimplemented,
          `${call.service}/${call.method} is not implemented`,
        );
    }
  };

  const handle = async (call: TtrpcCall): Promise<Uint8Array> => {
    const method = nriMethodLabel(call.method);
    counters.increment('requests', method);
    const start = performance.now();
    waiting++;
    try {
      return await urgently(async () => await dispatch(call));
    } catch (error) {
      counters.increment('errors', method);
      if (error instanceof DeadlineExceededError) counters.increment('deadline_exceeded', method);
      if (method !== 'other') log.error({ err: error, method }, 'an NRI call was answered with an error');
      throw error;
    } finally {
      waiting--;
      // The answer goes out before.
      if (waiting === 0) setImmediate(() => idle.splice(0).forEach((resolve) => resolve()));
      counters.answered?.(method, (performance.now() - start) / 1_000);
    }
  };

  const budget = (call: TtrpcCall): number => answerBudget(runtime.requestTimeoutMs, call.timeoutMs);

  const connection = createNriConnection({
    socket: options.socket,
    servedId: PLUGIN_CONNECTION_ID,
    calledId: RUNTIME_CONNECTION_ID,
    handle,
    onMalformed: (reason) => {
      counters.increment('malformed_frames');
      log.warn({ reason }, 'the container runtime sent an NRI frame that cannot be understood');
    },
  });
  const handshakeTimer = setTimeout(
    () =>
      connection.close(
        new Error(`the container runtime did not finish Synchronize within ${HANDSHAKE_TIMEOUT_MS} ms`),
      ),
    HANDSHAKE_TIMEOUT_MS,
  );
  const registration = nriCodecs().registerPlugin.encode({
    pluginName: options.pluginName,
    pluginIdx: options.pluginIndex,
  });
  connection.client
    .call(RUNTIME_SERVICE, 'RegisterPlugin', registration, HANDSHAKE_TIMEOUT_MS)
    .catch((cause: unknown) =>
      connection.close(new Error('the container runtime refused the registration', { cause })),
    );

  return {
    answered: () =>
      waiting === 0 ? Promise.resolve() : new Promise<void>((resolve) => void idle.push(resolve)),
    ended: connection.closed.finally(() => clearTimeout(handshakeTimer)),
    close: (reason) => connection.close(reason),
  };
}

function completeEvent(
  message: PodAndContainerMessage,
  method: string,
): { pod: NriPodSandbox; container: NriContainer } {
  if (message.pod === null || message.container === null) {
    const missing = message.pod === null ? 'pod' : 'container';
    throw new TtrpcStatusError(
      TtrpcCode.invalidArgument,
      `${method} has no ${missing}, expected both pod and container`,
    );
  }
  return { pod: podFromMessage(message.pod), container: containerFromMessage(message.container) };
}

function describe(pod: NriPodSandbox, container: NriContainer): string {
  return `container ${pod.namespace}/${pod.name}/${container.name}`;
}
