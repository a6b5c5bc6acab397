/** What has been started, to be stopped in the opposite order. */
export interface StopStack {
  /** @param timeoutMs how long the part may take; then the next one is told to stop all the same */
  add(name: string, timeoutMs: number, stop: () => Promise<void>): void;
  /** Stops everything that was added since the last call, each part whatever became of the others. Never rejects. */
  stop(): Promise<void>;
}

/** @param onProblem told of each part that failed to stop, or had not when its time was over */
export function createStopStack(onProblem: (name: string, error: unknown) => void): StopStack {
  const parts: { readonly name: string; readonly timeoutMs: number; readonly stop: () => Promise<void> }[] =
    [];
  return {
    add(name, timeoutMs, stop) {
      parts.push({ name, timeoutMs, stop });
    },
    async stop() {
      for (const { name, timeoutMs, stop } of parts.splice(0).reverse()) {
        const expired = Promise.withResolvers<never>();
        const timer = setTimeout(
          () => expired.reject(new Error(`not stopped after ${timeoutMs} ms`)),
          timeoutMs,
        );
        try {
          await Promise.race([stop(), expired.promise]);
        } catch (error) {
          onProblem(name, error);
        } finally {
          clearTimeout(timer);
        }
      }
    },
  };
}
