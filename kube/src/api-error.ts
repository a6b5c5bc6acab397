import { isJsonObject } from './kube-object.ts';

const MAX_MESSAGE_CHARACTERS = 2_000;

/** What the API server answered instead of what was asked for (a `Status`). */
export class ApiError extends Error {
  /** The HTTP status, or that of the event of a watch. */
  readonly code: number;
  /** Kubernetes' word for it, such as `AlreadyExists`; empty when the answer was no Status. */
  readonly reason: string;
  /** How long the server asks to wait, if it does. */
  readonly retryAfterMs: number | undefined;
  /** What the server says to it, at most 2,000 characters; empty when it says nothing. */
  readonly said: string;
  /** Kubernetes' words for the causes, such as `ResourceVersionTooLarge`. */
  readonly causes: readonly string[];

  constructor(what: string, code: number, status: unknown, retryAfterMs?: number) {
    const fields = isJsonObject(status) ? status : {};
    const said = typeof fields['message'] === 'string' ? fields['message'] : '';
    const shown = said.slice(0, MAX_MESSAGE_CHARACTERS);
    super(`${what}: the API server answered ${code}${shown === '' ? '' : `: ${shown}`}`);
    this.name = 'ApiError';
    this.said = shown;
    this.code = code;
    this.reason = typeof fields['reason'] === 'string' ? fields['reason'] : '';
    const details = isJsonObject(fields['details']) ? fields['details'] : {};
    this.causes = Array.isArray(details['causes']) ? details['causes'].flatMap(causeReason) : [];
    const seconds = details['retryAfterSeconds'];
    this.retryAfterMs =
      retryAfterMs ?? (typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : undefined);
  }
}

/** The API server could not be reached, or the connection broke before it had answered. */
export class ConnectionError extends Error {
  constructor(what: string, cause: unknown) {
    super(`${what}: no answer from the API server (${reasonOf(cause)})`, { cause });
    this.name = 'ConnectionError';
  }
}

/** The version asked for is too old (compacted) or is not known to this server: only a new list helps. */
export function isGone(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.code === 410 || error.reason === 'Expired' || error.causes.includes('ResourceVersionTooLarge');
}

/** Somebody else has changed the object since it was read. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === 409 && error.reason !== 'AlreadyExists';
}

export function isAlreadyExists(error: unknown): boolean {
  return error instanceof ApiError && error.code === 409 && error.reason === 'AlreadyExists';
}

export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}

/** The seconds, or the date, of a `Retry-After` header in milliseconds from now; undefined for anything else. */
export function retryAfterMs(header: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof header !== 'string') return undefined;
  if (/^[0-9]{1,9}$/.test(header)) return Number(header) * 1_000;
  const date = header.endsWith(' GMT') ? Date.parse(header) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

function causeReason(cause: unknown): string[] {
  return isJsonObject(cause) && typeof cause['reason'] === 'string' ? [cause['reason']] : [];
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { code } = cause as NodeJS.ErrnoException;
  return cause.message === '' ? (code ?? cause.name) : cause.message;
}
