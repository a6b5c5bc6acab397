import { execFileSync } from 'node:child_process';
import { createConnection, createServer, type Server, type Socket } from 'node:net';

const GUEST_ADDRESS = '10.0.2.15/24';
const HOST_ADDRESS = '10.0.2.2';

/** In a guest: ports of the host's loopback interface, under the same numbers on the guest's own. */
export interface HostPorts {
  /** Breaks every connection, and each new one at once, until they are joined again. */
  part(): void;
  join(): void;
  close(): void;
}

/**
 * Takes the network card into use, and forwards ports, so that certificates for 127.0.0.1 hold here too.
 *
 * @throws Error when there is no card: see the option `network` of a guest
 */
export async function forwardHostPorts(ports: readonly number[]): Promise<HostPorts> {
  execFileSync('modprobe', ['virtio_net']);
  execFileSync('ip', ['addr', 'replace', GUEST_ADDRESS, 'dev', 'eth0']);
  execFileSync('ip', ['link', 'set', 'eth0', 'up']);
  const sockets = new Set<Socket>();
  let isParted = false;
  const servers = ports.map((port) =>
    createServer((socket) => {
      if (isParted) {
        socket.destroy();
        return;
      }
      const other = createConnection({ host: HOST_ADDRESS, port });
      socket.pipe(other).pipe(socket);
      for (const [each, peer] of [
        [socket, other],
        [other, socket],
      ] as const) {
        sockets.add(each);
        each.on('error', () => peer.destroy());
        each.on('close', () => {
          sockets.delete(each);
          peer.destroy();
        });
      }
    }),
  );
  await Promise.all(servers.map((server, index) => listen(server, ports[index] ?? 0)));
  const part = (): void => {
    isParted = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    part,
    join() {
      isParted = false;
    },
    close() {
      part();
      for (const server of servers) server.close();
    },
  };
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}
