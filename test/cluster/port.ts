import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below those that the kernel gives to connections: none of them takes a port between here and its user. */
const [FIRST, LAST] = [12_000, 32_000];
const ATTEMPTS = 100;

/**
 * Ports of 127.0.0.1 on which nothing listens now, all different. Another process may still take one before its
 * user does.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>();
  for (let attempt = 0; servers.size < count; attempt++) {
    const port = randomInt(FIRST, LAST);
    const server = createServer();
    try {
      await once(server.listen(port, '127.0.0.1'), 'listening');
      servers.set(port, server);
    } catch (error) {
      if (attempt >= ATTEMPTS) throw new Error('no free port was found', { cause: error });
    }
  }
  for (const server of servers.values()) await once(server.close(), 'close');
  return [...servers.keys()];
}
