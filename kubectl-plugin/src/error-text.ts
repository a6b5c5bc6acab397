import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import { EXIT_ERROR, EXIT_USAGE, type ExitCode } from './exit-code.ts';
import { PluginError, UsageError } from './plugin-error.ts';

/** What a person reads about an error, and how the process ends. Never a stack trace. */
export interface ErrorReport {
  readonly text: string;
  readonly exitCode: ExitCode;
}

const MAX_CHARACTERS = 4_000;
const MAX_CAUSES = 5;

/** Certificate errors of Node's TLS, by their codes. */
const CERTIFICATE = /certificate|CERT_|SELF_SIGNED|UNABLE_TO_VERIFY/i;

/**
 * Errors of the API client are known by their names and fields, so that commands that need no cluster do not load it.
 */
export function reportError(error: unknown): ErrorReport {
  if (error instanceof UsageError) return report(withRemedy(error.message, error.remedy), EXIT_USAGE);
  if (error instanceof PluginError) return report(withRemedy(error.message, error.remedy), EXIT_ERROR);
  if (!(error instanceof Error)) return report(`error: ${String(error)}`, EXIT_ERROR);
  if (isApiError(error)) return report(apiErrorText(error), EXIT_ERROR);
  if (error.name === 'ConnectionError') return report(connectionText(error), EXIT_ERROR);
  return report(`error: ${error.message}`, EXIT_ERROR);
}

interface ApiErrorFields extends Error {
  readonly code: number;
  readonly reason: string;
  readonly said: string;
}

function isApiError(error: Error): error is ApiErrorFields {
  return error.name === 'ApiError' && 'code' in error && typeof error.code === 'number' && 'said' in error;
}

function apiErrorText({ code, reason, said, message }: ApiErrorFields): string {
  switch (code) {
    case 401:
      return withRemedy(
        'you must be logged in to the server (Unauthorized)',
        'log in again, or check the user of the context: kubectl config view --minify',
      );
    case 403:
      return serverError(
        'Forbidden',
        said,
        'ask an administrator for the right, and check it with: kubectl auth can-i --list',
      );
    case 404:
      if (said.includes('"')) return serverError('NotFound', said);
      return withRemedy(
        `the server does not know this kind of object (${message.split(':')[0] ?? ''})`,
        'Runtime Enforcer, or its custom resources, are not installed in this cluster; see: kubectl runtime-enforcer doctor',
      );
    case 409:
      return serverError('Conflict', said, 'run the command again');
    case 429:
    case 503:
      return serverError(reason === '' ? String(code) : reason, said, 'the server is busy: try again later');
    default:
      return serverError(reason === '' ? String(code) : reason, said === '' ? message : said);
  }
}

/** As kubectl words it. */
function serverError(reason: string, said: string, remedy?: string): string {
  const hint = remedy === undefined ? '' : `\n${remedy}`;
  return `Error from server (${reason}): ${said}${hint}`;
}

function connectionText(error: Error): string {
  const causes = causesOf(error);
  const codes = causes.flatMap((cause) => [cause.name, ...('code' in cause ? [String(cause.code)] : [])]);
  const last = causes.at(-1)?.message ?? error.message;
  if (codes.includes('TimeoutError')) {
    return withRemedy(
      'the server did not answer in time',
      'check that it is the right one (kubectl cluster-info), or allow more with --request-timeout',
    );
  }
  if (codes.includes('SyntaxError')) {
    return withRemedy(
      `the server's answer is not JSON (${last})`,
      'check that the address is that of an API server, and not of a proxy or a login page: kubectl cluster-info',
    );
  }
  if (codes.some((code) => CERTIFICATE.test(code)) || CERTIFICATE.test(last)) {
    return withRemedy(
      `unable to connect to the server: its certificate is not trusted (${last})`,
      'check certificate-authority in the kubeconfig, or give --certificate-authority FILE',
    );
  }
  const code = codes.find((each) => /^E[A-Z]+$/.test(each));
  const reason = code === undefined ? last : last === '' ? code : last;
  return withRemedy(
    `unable to connect to the server: ${reason}`,
    'check that the address is right and the server is running: kubectl cluster-info',
  );
}

function causesOf(error: Error): readonly Error[] {
  const causes: Error[] = [];
  let cause: unknown = error.cause;
  while (cause instanceof Error && causes.length < MAX_CAUSES) {
    causes.push(cause);
    // What failed on each address of a name stands side by side.
    cause = cause instanceof AggregateError ? (cause.errors as readonly unknown[])[0] : cause.cause;
  }
  return causes;
}

function withRemedy(message: string, remedy?: string): string {
  return remedy === undefined ? `error: ${message}` : `error: ${message}\n${remedy}`;
}

function report(text: string, exitCode: ExitCode): ErrorReport {
  const lines = text.slice(0, MAX_CHARACTERS).split('\n').map(escapeUnprintable);
  return { text: lines.join('\n'), exitCode };
}
