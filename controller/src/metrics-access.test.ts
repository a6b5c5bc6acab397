import { ApiError } from '@runtime-enforcer/kube/api-error';
import type { ApiRequest } from '@runtime-enforcer/kube/api-client';
import { describe, expect, it } from 'vitest';
import { memoryApi } from './testing/memory-api.ts';
import { metricsAccess } from './metrics-access.ts';

function world(users: Readonly<Record<string, { readonly mayRead: boolean }>>) {
  let now = 0;
  let isAway = false;
  const asked: string[] = [];
  const request = ({ path, body }: ApiRequest): Promise<unknown> => {
    if (isAway) return Promise.reject(new ApiError('POST', 500, {}));
    const spec = (body as { readonly spec: Record<string, string> }).spec;
    asked.push(path.split('/').at(-1) ?? '');
    if (path.endsWith('tokenreviews')) {
      const username = spec['token'] ?? '';
      return Promise.resolve({
        status: username in users ? { authenticated: true, user: { username } } : { authenticated: false },
      });
    }
    expect(spec).toMatchObject({ nonResourceAttributes: { verb: 'get', path: '/metrics' } });
    return Promise.resolve({ status: { allowed: users[spec['user'] ?? '']?.mayRead } });
  };
  return {
    asked,
    access: metricsAccess({ ...memoryApi().client, request }, () => now),
    pass: (ms: number) => (now += ms),
    goAway: () => (isAway = true),
  };
}

describe('metricsAccess', () => {
  it.each([
    [undefined, 'unknown'],
    ['', 'unknown'],
    ['Basic reader', 'unknown'],
    ['Bearer ', 'unknown'],
    [`Bearer ${'x'.repeat(20_000)}`, 'unknown'],
    ['Bearer stranger', 'unknown'],
    ['Bearer visitor', 'forbidden'],
    ['Bearer reader', 'granted'],
  ])('judges %j', async (authorization, expected) => {
    const { access } = world({ reader: { mayRead: true }, visitor: { mayRead: false } });
    expect(await access(authorization)).toBe(expected);
  });

  it('asks once a minute for whom it let in, and each time for others', async () => {
    const { access, asked, pass, goAway } = world({ reader: { mayRead: true }, visitor: { mayRead: false } });
    for (let scrape = 0; scrape < 4; scrape++, pass(15_000)) await access('Bearer reader');
    expect(asked).toEqual(['tokenreviews', 'subjectaccessreviews']);
    await access('Bearer reader');
    expect(asked).toHaveLength(4);
    await access('Bearer visitor');
    await access('Bearer visitor');
    expect(asked).toHaveLength(8);
    goAway();
    expect(await access('Bearer reader')).toBe('granted');
    pass(60_000);
    await expect(access('Bearer reader')).rejects.toThrow(ApiError);
  });
});
