import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isJsonObject } from '@runtime-enforcer/kube/kube-object';
import type { Access } from '@runtime-enforcer/telemetry/http-endpoint';
import { isAllowed } from './admission/access-review.ts';
import { userOf } from './admission/admission-review.ts';

const REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';
/** A scraper comes about every 15 s: the API server is asked once a minute, and a right taken away ends as soon. */
const REMEMBERED_MS = 60_000;
const MAX_REMEMBERED = 64;
const MAX_TOKEN_CHARACTERS = 16_384;
const REVIEW_TIMEOUT_MS = 5_000;

/**
 * Who may read the metrics: who shows a token of the cluster, and may `get` the path `/metrics`.
 *
 * @returns judges an `Authorization` header; rejects when the API server cannot be asked
 */
export function metricsAccess(
  client: ApiClient,
  monotonicMs: () => number = () => performance.now(),
): (authorization: string | undefined) => Promise<Access> {
  const granted = new Map<string, number>();

  async function review(token: string): Promise<Access> {
    const signal = AbortSignal.timeout(REVIEW_TIMEOUT_MS);
    const answer = await client.request({
      method: 'POST',
      path: REVIEWS,
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } },
      signal,
    });
    const status = isJsonObject(answer) && isJsonObject(answer['status']) ? answer['status'] : {};
    if (status['authenticated'] !== true) return 'unknown';
    const nonResourceAttributes = { verb: 'get', path: '/metrics' };
    const user = userOf(status['user']);
    return (await isAllowed(client, user, { nonResourceAttributes }, signal)) ? 'granted' : 'forbidden';
  }

  return async (authorization) => {
    const token = /^Bearer ([\w.~+/=-]+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined || token.length > MAX_TOKEN_CHARACTERS) return 'unknown';
    if ((granted.get(token) ?? Number.NEGATIVE_INFINITY) > monotonicMs()) return 'granted';
    granted.delete(token);
    const access = await review(token);
    if (access !== 'granted') return access;
    const [oldest] = granted.keys();
    if (granted.size >= MAX_REMEMBERED && oldest !== undefined) granted.delete(oldest);
    granted.set(token, monotonicMs() + REMEMBERED_MS);
    return access;
  };
}
