import type { NriContainer, NriPodSandbox } from './messages.ts';

/** The part of pino's interface that is used. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface NriRuntime {
  name: string;
  version: string;
  /** The runtime drops a plugin that answers a call later than this. */
  requestTimeoutMs: number;
}

/** What the plugin's owner does on the runtime's calls. Calls may overlap. */
export interface NriHandlers {
  /**
   * Takes over everything the runtime knows, after each connection. Events wait until it has
   * succeeded; when it rejects, the connection is given up and made again.
   */
  synchronize(
    pods: readonly NriPodSandbox[],
    containers: readonly NriContainer[],
    runtime: NriRuntime,
  ): Promise<void>;
  /**
   * Called when the container's first process exists but has not executed the entrypoint. When it
   * rejects, or has not resolved when `deadline` aborts, the runtime refuses the container; the
   * error's message is what the user sees.
   */
  startContainer(pod: NriPodSandbox, container: NriContainer, deadline: AbortSignal): Promise<void>;
  /** Errors are logged and go no further. */
  removeContainer(pod: NriPodSandbox, container: NriContainer): Promise<void>;
  /** A Synchronize has succeeded: the runtime asks us from now on. */
  connected?(): void;
  /** A connection that had been announced by `connected` has ended. */
  disconnected?(reason: Error): void;
}
