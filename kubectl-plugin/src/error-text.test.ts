import { ApiError, ConnectionError } from '@runtime-enforcer/kube/api-error';
import { describe, expect, it } from 'vitest';
import { reportError } from './error-text.ts';
import { PluginError, UsageError } from './plugin-error.ts';

const status = (reason: string, message: string) => ({ kind: 'Status', reason, message });
const withCode = (code: string, message = code) => Object.assign(new Error(message), { code });

describe('reportError', () => {
  it.each<[string, unknown, number, string]>([
    ['a mistake on the command line', new UsageError('bad', 'see --help'), 2, 'error: bad\nsee --help'],
    ['what a person can repair', new PluginError('bad'), 1, 'error: bad'],
    ['401', new ApiError('GET /x', 401, status('Unauthorized', 'Unauthorized')), 1, 'you must be logged in'],
    ['403', new ApiError('GET /x', 403, status('Forbidden', 'no')), 1, 'Error from server (Forbidden): no\n'],
    [
      '404 of an object',
      new ApiError('GET /x', 404, status('NotFound', 'wp "a" not found')),
      1,
      'Error from server (NotFound): wp "a" not found',
    ],
    [
      '404 of a kind',
      new ApiError('GET /x', 404, { message: '404 page not found' }),
      1,
      'are not installed in this cluster',
    ],
    [
      'a refusal',
      new ApiError('PUT /x', 422, status('Invalid', 'spec is wrong')),
      1,
      'Error from server (Invalid): spec is wrong',
    ],
    [
      'a busy server',
      new ApiError('GET /x', 429, status('TooManyRequests', 'slow down')),
      1,
      'try again later',
    ],
    [
      'a refused connection',
      new ConnectionError('GET /x', withCode('ECONNREFUSED', 'connect ECONNREFUSED')),
      1,
      'unable to connect to the server: connect ECONNREFUSED',
    ],
    [
      'no answer in time',
      new ConnectionError('GET /x', new DOMException('late', 'TimeoutError')),
      1,
      'did not answer in time',
    ],
    [
      'a foreign certificate',
      new ConnectionError('GET /x', withCode('SELF_SIGNED_CERT_IN_CHAIN', 'self-signed')),
      1,
      'its certificate is not trusted',
    ],
    [
      'an answer that is no JSON',
      new ConnectionError('GET /x', new SyntaxError('Unexpected token <')),
      1,
      "the server's answer is not JSON (Unexpected token <)",
    ],
    ['anything else', new Error('oh'), 1, 'error: oh'],
    ['what is no error', 'oh', 1, 'error: oh'],
  ])('words %s', (_, error, exitCode, text) => {
    const reported = reportError(error);
    expect(reported.text).toContain(text);
    expect(reported.exitCode).toBe(exitCode);
    expect(reported.text).not.toContain('\n    at ');
  });

  it('lets nothing act on the terminal, and nothing be endless', () => {
    const { text } = reportError(new Error(`\u001b[2J\u202e${'x'.repeat(100_000)}`));
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(text.length).toBeLessThan(5_000);
  });
});
