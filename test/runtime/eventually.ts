import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 25;
const DEFAULT_BUDGET_MS = 30_000;

/**
 * Asks again and again until the answer is something else than undefined, and returns it.
 *
 * @param what for the error: what was waited for; a function is asked when the budget is over
 * @throws Error with that sentence, and the last answer's own error if it threw, when the budget is over
 */
export async function eventually<Answer>(
  what: string | (() => string),
  ask: () => Promise<Answer | undefined> | Answer | undefined,
  budgetMs: number = DEFAULT_BUDGET_MS,
): Promise<Answer> {
  const end = performance.now() + budgetMs;
  for (;;) {
    let failure: unknown;
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
    } catch (cause) {
      failure = cause;
    }
    if (performance.now() > end) {
      const text = typeof what === 'string' ? what : what();
      throw new Error(`did not happen within ${budgetMs} ms: ${text}`, { cause: failure });
    }
    await delay(POLL_MS);
  }
}
