import type { Native } from './native.ts';

/** Waits until no program in the kernel can still hold what it read before. */
export interface GracePeriod {
  /** Resolves when every program that ran at the call has ended. Callers at about the same time share one wait. */
  passed(): Promise<void>;
}

export function createGracePeriod(native: Pick<Native, 'waitForReaders'>): GracePeriod {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const start = (): Promise<void> => {
    const wait = native.waitForReaders().finally(() => {
      if (running === wait) running = undefined;
    });
    running = wait;
    return wait;
  };

  return {
    passed() {
      if (running === undefined) return start();
      // The one that runs may have begun before the caller's change: it takes the next one.
      next ??= running
        .catch(() => undefined)
        .then(() => {
          next = undefined;
          return start();
        });
      return next;
    },
  };
}
