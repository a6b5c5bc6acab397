import { nextTurn } from '../event-loop.ts';

/** How long one turn of the loop may be taken by what is paced. */
const SLICE_MS = 4;

/**
 * Lets callers begin one after the other, so that thousands that come at once do not keep the loop from
 * everything else.
 */
export function createPacer(): () => Promise<void> {
  const waiting: (() => void)[] = [];
  let head = 0;
  let running = false;

  const run = async (): Promise<void> => {
    let sliceStart = performance.now();
    while (head < waiting.length) {
      waiting[head++]?.();
      // The caller goes on in the next microtask.
      await Promise.resolve();
      if (performance.now() - sliceStart < SLICE_MS) continue;
      await nextTurn();
      sliceStart = performance.now();
    }
    waiting.length = head = 0;
    running = false;
  };

  return () => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    waiting.push(() => resolve(undefined));
    if (!running) {
      running = true;
      void run();
    }
    return promise;
  };
}
