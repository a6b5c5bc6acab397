import { createConnection } from 'node:net';
import type { Socket } from 'node:net';

/** The longest path that the kernel takes for a unix socket, without the closing zero byte. */
const SOCKET_PATH_MAX_BYTES = 107;

/** Nobody could be reached on the NRI socket; the message says what to do. */
export class NriSocketError extends Error {
  override readonly name = 'NriSocketError';
}

/** Connects to the runtime's socket. Rejects with an {@link NriSocketError}. */
export async function connectNriSocket(socketPath: string): Promise<Socket> {
  const length = Buffer.byteLength(socketPath);
  if (length === 0 || length > SOCKET_PATH_MAX_BYTES) {
    throw new NriSocketError(
      `NRI socket path ${JSON.stringify(socketPath)} has ${length} bytes, expected 1 to ${SOCKET_PATH_MAX_BYTES}`,
    );
  }
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = createConnection({ path: socketPath });
  const failed = (error: NodeJS.ErrnoException): void => reject(unreachable(socketPath, error));
  socket.once('error', failed);
  socket.once('connect', () => {
    socket.off('error', failed);
    resolve(socket);
  });
  return promise;
}

function unreachable(socketPath: string, error: NodeJS.ErrnoException): NriSocketError {
  const code = error.code ?? error.message;
  return new NriSocketError(
    `cannot reach the container runtime at NRI socket ${socketPath} (${code}): ${remedy(code)}`,
    {
      cause: error,
    },
  );
}

function remedy(code: string): string {
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return 'run the agent as root';
    case 'ENOTSOCK':
      return 'this is not a socket; give the path of the NRI socket';
    default:
      return (
        'see that the runtime runs and has NRI enabled (containerd 2.0 and later: on unless disabled; ' +
        'containerd 1.7: disable = false in [plugins."io.containerd.nri.v1.nri"]; CRI-O: enable_nri = true in ' +
        '[crio.nri]), and that the path is right'
      );
  }
}
