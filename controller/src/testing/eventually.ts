import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 5;

/** Waits until the condition holds. @throws Error naming it when it does not within the budget */
export async function eventually(what: string, holds: () => boolean, budgetMs = 5_000): Promise<void> {
  const end = performance.now() + budgetMs;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`did not happen within ${budgetMs} ms: ${what}`);
    await sleep(POLL_MS);
  }
}
