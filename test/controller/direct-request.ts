import { request } from 'node:https';
import type { ControlPlane } from '../cluster/control-plane.ts';

export interface DirectAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  /** What the API server's `Warning` headers say. */
  readonly warnings: readonly string[];
}

/** One request to the API server whose answer is looked at whole. */
export async function directRequest(
  plane: ControlPlane,
  sent: {
    readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
    readonly path: string;
    readonly body?: unknown;
    /** Another user than the administrator, and the groups. */
    readonly as?: { readonly user: string; readonly groups?: readonly string[] };
  },
): Promise<DirectAnswer> {
  const { authority, admin } = plane.credentials;
  const { method, path, body, as } = sent;
  const text = body === undefined ? '' : JSON.stringify(body);
  return await new Promise((resolve, reject) => {
    const message = request(
      new URL(path, plane.url),
      {
        method,
        ca: authority.certificate,
        cert: admin.certificate,
        key: admin.key,
        agent: false,
        headers: {
          'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
          'content-length': Buffer.byteLength(text),
          ...(as && { 'impersonate-user': as.user }),
          ...(as?.groups && { 'impersonate-group': [...as.groups] }),
        },
      },
      (response) => {
        const { rawHeaders } = response;
        const warnings = rawHeaders.flatMap((name, index) =>
          index % 2 === 0 && name.toLowerCase() === 'warning'
            ? [JSON.parse(/^299 - (".*")$/.exec(rawHeaders[index + 1] ?? '')?.[1] ?? '""') as string]
            : [],
        );
        response.toArray().then((chunks) => {
          const json = JSON.parse(Buffer.concat(chunks as Buffer[]).toString()) as Record<string, unknown>;
          resolve({ status: response.statusCode ?? 0, body: json, warnings });
        }, reject);
      },
    );
    message.on('error', reject);
    message.end(text);
  });
}
