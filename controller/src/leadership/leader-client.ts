import type { ApiClient } from '@runtime-enforcer/kube/api-client';

/** Something was to be written by a process that no longer leads: nothing was written. */
export class NotLeaderError extends Error {
  constructor(what: string) {
    super(`${what}: not sent, because this process does not lead`);
    this.name = 'NotLeaderError';
  }
}

/**
 * The client for everything that only the leader may do. It asks right before each write: a process that was stopped
 * for a while goes on before any timer has told it that another leads.
 */
export function leaderClient(client: ApiClient, isLeader: () => boolean): ApiClient {
  return {
    async request(request) {
      const { method = 'GET', path } = request;
      if (method === 'GET') return await client.request(request);
      const beforeSend = (): void => {
        if (!isLeader()) throw new NotLeaderError(`${method} ${path}`);
      };
      return await client.request({ ...request, beforeSend });
    },
    stream: async (request) => await client.stream(request),
  };
}
