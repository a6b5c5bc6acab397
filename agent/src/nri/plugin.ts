import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { NriCounters } from './counters.ts';
import type { Logger, NriHandlers } from './handlers.ts';
import { startNriSession } from './session.ts';
import type { NriSession } from './session.ts';
import { connectNriSocket } from './socket.ts';

export type { NriCounter, NriCounters, NriMethod } from './counters.ts';
export type { Logger, NriHandlers, NriRuntime } from './handlers.ts';
export type { NriContainer, NriContainerState, NriPodSandbox } from './messages.ts';

/** Pause before a new connection: the first, and the longest; up to half of each is left out at random. */
const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 5_000;

/**
 * Longest pause while nobody listens on the socket: such an attempt costs next to nothing, and every
 * moment between a runtime's start and our connection is one in which containers start unasked.
 */
const RECONNECT_UNREACHABLE_MAX_MS = 500;

/** A connection that lasted this long makes the next pause the shortest one again. */
const SERVED_WELL_MS = 10_000;

/** A connection that was replaced still answers for so long, until the runtime is sure to ask the new one. */
const REPLACED_MS = 1_000;

/** How long a connection that is to end may take to answer what it was asked. */
const LAST_ANSWERS_MS = 500;

/** How long a first start keeps trying to reach the socket, unless told otherwise. */
const FIRST_CONNECT_TIMEOUT_MS = 10_000;

export interface NriPlugin {
  /**
   * Connects and resolves after the first completed Synchronize. Rejects with an {@link NriSocketError}
   * if the socket could not be reached once within `firstConnectTimeoutMs`; what goes wrong later is logged, and a
   * new connection is made for ever. To be called once.
   */
  start(): Promise<void>;
  /**
   * Takes over everything the runtime knows once more, by a second connection that then replaces the first: there is
   * no moment at which the runtime asks nobody. Does nothing while not connected. Rejects if the second one fails;
   * the first then goes on.
   */
  resynchronize(): Promise<void>;
  /** Ends the connection after its last answers; a start() that has not resolved yet rejects. */
  stop(): Promise<void>;
  /** True between a completed Synchronize and the end of its connection. */
  readonly connected: boolean;
}

/**
 * Makes an NRI plugin that connects to a runtime's socket by itself.
 *
 * Throws an Error for a name or an index that every runtime would refuse.
 */
export function createNriPlugin(options: {
  socketPath: string;
  pluginName: string;
  pluginIndex: string;
  handlers: NriHandlers;
  /** Whether a runtime that can choose starts a container whose answer is late or lost. */
  failOpen: boolean;
  log: Logger;
  counters: NriCounters;
  firstConnectTimeoutMs?: number;
}): NriPlugin {
  const { socketPath, handlers, log, counters, firstConnectTimeoutMs = FIRST_CONNECT_TIMEOUT_MS } = options;
  checkIdentity(options.pluginName, options.pluginIndex);
  const stopping = new AbortController();
  const first = Promise.withResolvers<undefined>();
  /** Connections besides the one that serves: not taken over yet, or replaced. */
  const others = new Set<NriSession>();
  let session: NriSession | undefined;
  let running: Promise<void> | undefined;
  let connected = false;
  const stopped = (): boolean => stopping.signal.aborted;

  const begin = (socket: Socket, onSynchronized: () => void): NriSession => {
    counters.increment('connects');
    const begun = startNriSession({ ...options, socket, onSynchronized });
    void begun.ended.then(() => counters.increment('disconnects'));
    return begun;
  };

  const notify = (callback: () => void): void => {
    try {
      callback();
    } catch (error) {
      log.error({ err: error }, 'an NRI connection callback failed');
    }
  };

  const onSynchronized = (): void => {
    connected = true;
    log.info({ socketPath }, 'connected to the container runtime');
    notify(() => handlers.connected?.());
    first.resolve(undefined);
  };

  /** Runs one connection to its end and returns why it ended. */
  const serve = async (socket: Socket): Promise<Error> => {
    session = begin(socket, onSynchronized);
    if (stopped()) session.close(stoppedError());
    let served: NriSession;
    let reason: Error;
    do {
      served = session;
      reason = await served.ended;
    } while (session !== served);
    if (connected) {
      connected = false;
      notify(() => handlers.disconnected?.(reason));
    }
    return reason;
  };

  const run = async (): Promise<void> => {
    const startedAt = performance.now();
    let reachedOnce = false;
    let pauseMs = RECONNECT_FIRST_MS;
    let lastReason = '';
    while (!stopped()) {
      const attemptedAt = performance.now();
      const socket = await connectNriSocket(socketPath).catch(asError);
      const reached = !(socket instanceof Error);
      reachedOnce ||= reached;
      const reason = reached ? await serve(socket) : socket;
      if (stopped()) break;
      if (!reachedOnce && performance.now() - startedAt >= firstConnectTimeoutMs) {
        first.reject(reason);
        return;
      }
      if (performance.now() - attemptedAt >= SERVED_WELL_MS) pauseMs = RECONNECT_FIRST_MS;
      const level = reached || reason.message !== lastReason ? 'warn' : 'debug';
      lastReason = reason.message;
      log[level](
        { err: reason, socketPath },
        'not connected to the container runtime: containers start unasked',
      );
      const jitteredMs = pauseMs * (0.5 + Math.random() / 2);
      await delay(jitteredMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, reached ? RECONNECT_MAX_MS : RECONNECT_UNREACHABLE_MAX_MS);
    }
    first.reject(stoppedError());
  };

  return {
    async start() {
      if (running !== undefined) throw new Error('the NRI plugin has been started before');
      running = run();
      await first.promise;
    },
    async resynchronize() {
      const before = session;
      if (!connected || before === undefined || stopped()) return;
      const socket = await connectNriSocket(socketPath);
      const taken = Promise.withResolvers<undefined>();
      const onSynchronized = (): void => {
        others.delete(fresh);
        if (session !== before || !connected || stopped()) {
          fresh.close(new Error('the connection that was to be replaced has ended'));
          return;
        }
        session = fresh;
        others.add(before);
        setTimeout(
          () => before.close(new Error('another connection replaced this one')),
          REPLACED_MS,
        ).unref();
        taken.resolve(undefined);
      };
      const fresh = begin(socket, onSynchronized);
      others.add(fresh);
      void before.ended.then(() => others.delete(before));
      void fresh.ended.then((reason) => {
        others.delete(fresh);
        taken.reject(reason);
      });
      if (stopped()) fresh.close(stoppedError());
      await taken.promise;
    },
    async stop() {
      stopping.abort();
      if (connected && session !== undefined) {
        const late = new AbortController();
        const patience = delay(LAST_ANSWERS_MS, undefined, { signal: late.signal }).catch(() => undefined);
        await Promise.race([session.answered(), session.ended, patience]);
        late.abort();
      }
      for (const each of others) each.close(stoppedError());
      session?.close(stoppedError());
      await running;
    },
    get connected() {
      return connected;
    },
  };
}

function stoppedError(): Error {
  return new Error('the NRI plugin has been stopped');
}

function checkIdentity(name: string, index: string): void {
  if (!/^[A-Za-z0-9_.+-]+$/.test(name)) {
    throw new Error(
      `NRI plugin name ${JSON.stringify(name)}: expected letters, digits, "_", ".", "+" and "-" only`,
    );
  }
  if (!/^[0-9]{2}$/.test(index)) {
    throw new Error(`NRI plugin index ${JSON.stringify(index)}: expected two digits, such as "00"`);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
