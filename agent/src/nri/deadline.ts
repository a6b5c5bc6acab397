/**
 * Share of the runtime's request timeout in which we answer. A runtime that gets no answer in time
 * drops the plugin and lets the container start; the rest is for sending and for a late timer.
 */
const BUDGET_SHARE = 0.75;

/** What runtimes use when their Configure does not tell (before NRI 0.8). */
export const DEFAULT_REQUEST_TIMEOUT_MS = 2_000;

/** Longest request timeout that is believed. */
const MAX_REQUEST_TIMEOUT_MS = 600_000;

/** The request timeout to work with, from the milliseconds of a Configure call. */
export function acceptRequestTimeout(configuredMs: number): number {
  return configuredMs > 0 ? Math.min(configuredMs, MAX_REQUEST_TIMEOUT_MS) : DEFAULT_REQUEST_TIMEOUT_MS;
}

/** Milliseconds in which a call must be answered: a share of the shorter of both timeouts, at least 1. */
export function answerBudget(requestTimeoutMs: number, callTimeoutMs: number | undefined): number {
  return Math.max(
    1,
    Math.floor(BUDGET_SHARE * Math.min(requestTimeoutMs, callTimeoutMs ?? requestTimeoutMs)),
  );
}

/** Work did not end within its budget. */
export class DeadlineExceededError extends Error {
  override readonly name = 'DeadlineExceededError';
}

/**
 * Runs `work` and settles as it does, but rejects with a {@link DeadlineExceededError} once `budgetMs`
 * are over. The work's signal is aborted with the same error then; what it does later is ignored.
 */
export async function withDeadline<T>(
  budgetMs: number,
  expiredMessage: string,
  work: (deadline: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = new DeadlineExceededError(expiredMessage);
    controller.abort(error);
    reject(error);
  }, budgetMs);
  try {
    return await Promise.race([work(controller.signal), expired]);
  } finally {
    clearTimeout(timer);
  }
}
