/** What has been started, to be stopped in the opposite order. */
export interface StopStack {
  add(name: string, stop: () => Promise<void>): void;
  /** Stops everything, each part whatever became of the others; resolves within the time limit. To be called once. */
  stop(): Promise<void>;
}

/**
 * @param timeoutMs for all parts together
 * @param onProblem told of each part that failed to stop, or had not when the time was over
 */
export function createStopStack(
  timeoutMs: number,
  onProblem: (name: string, error: unknown) => void,
): StopStack {
  const parts: { readonly name: string; readonly stop: () => Promise<void> }[] = [];
  return {
    add(name, stop) {
      parts.push({ name, stop });
    },
    async stop() {
      const expired = Promise.withResolvers<'expired'>();
      const timer = setTimeout(() => expired.resolve('expired'), timeoutMs);
      const stopOne = async ({ name, stop }: (typeof parts)[number]): Promise<void> => {
        try {
          await stop();
        } catch (error) {
          onProblem(name, error);
        }
      };
      for (const part of parts.reverse()) {
        // A part that hangs costs the time of all, but keeps none from being told to stop.
        const result = await Promise.race([stopOne(part), expired.promise]);
        if (result === 'expired') onProblem(part.name, new Error(`not stopped after ${timeoutMs} ms`));
      }
      clearTimeout(timer);
    },
  };
}
