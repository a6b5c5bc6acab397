import { execFileSync } from 'node:child_process';
import { createConnection, createServer, type Server } from 'node:net';

const GUEST_ADDRESS = '10.0.2.15/24';
const HOST_ADDRESS = '10.0.2.2';

/** In a guest: ports of the host's loopback interface, under the same numbers on the guest's own. */
export interface HostPorts {
  close(): void;
}

/**
 * Takes the network card into use, and forwards ports, so that certificates for 127.0.0.1 hold here too.
 *
 * @throws Error when there is no card: see the option `network` of a guest
 */
export async function forwardHostPorts(ports: readonly number[]): Promise<HostPorts> {
  execFileSync('modprobe', ['virtio_net']);
  execFileSync('ip', ['addr', 'add', GUEST_ADDRESS, 'dev', 'eth0']);
  execFileSync('ip', ['link', 'set', 'eth0', 'up']);
  const servers = await Promise.all(ports.map(forward));
  return {
    close() {
      for (const server of servers) server.close();
    },
  };
}

async function forward(port: number): Promise<Server> {
  const server = createServer((socket) => {
    const other = createConnection({ host: HOST_ADDRESS, port });
    socket.pipe(other).pipe(socket);
    socket.on('error', () => other.destroy());
    other.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return server;
}
