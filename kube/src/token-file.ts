import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import type { KubeConfig, User } from '@kubernetes/client-node';

type Authenticator = Parameters<KubeConfig['addAuthenticator']>[0];

/** As long as client-go trusts its copy; kubelet writes a new token long before the old one ends. */
const TRUSTED_MS = 60_000;
const PROVIDER = 'token-file';

/** A bearer token in a file that somebody else renews. */
export interface TokenFile extends Authenticator {
  /** The server has refused the token: the next request reads the file again. */
  expire(): void;
}

/** Names a token file as the way in which a user of a KubeConfig proves himself. */
export function tokenFileUser(name: string, path: string): User {
  return { name, authProvider: { name: PROVIDER, config: { path } } };
}

/** The path in a user that authenticates by a token file, whoever wrote it. */
export function tokenPathOf(user: User): string | undefined {
  const provider = user.authProvider as
    { readonly config?: { readonly path?: unknown; readonly tokenFile?: unknown } } | undefined;
  const path = provider?.config?.path ?? provider?.config?.tokenFile;
  return typeof path === 'string' ? path : undefined;
}

/** @param nowMs a monotonic clock */
export function tokenFile(nowMs: () => number = () => performance.now()): TokenFile {
  let known: { readonly path: string; readonly token: string; readonly readAtMs: number } | undefined;

  async function token(path: string): Promise<string> {
    if (known?.path === path && nowMs() - known.readAtMs < TRUSTED_MS) return known.token;
    const readAtMs = nowMs();
    const text = await readFile(path, 'utf8');
    known = { path, token: text.trim(), readAtMs };
    return known.token;
  }

  return {
    isAuthProvider: (user) => (user.authProvider as { name?: string } | undefined)?.name === PROVIDER,
    async applyAuthentication(user: User, options: RequestOptions) {
      const path = tokenPathOf(user);
      if (path === undefined) return;
      const authorization = `Bearer ${await token(path)}`;
      options.headers = { ...(options.headers as Record<string, string> | undefined), authorization };
    },
    expire: () => (known = undefined),
  };
}
