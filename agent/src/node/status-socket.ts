import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { CommandError } from '../commands/command-error.ts';
import { problemOf } from './bounded-file.ts';

const SOCKET_NAME = 'agent.sock';
/** Askers at the same time. */
const MAX_CONNECTIONS = 16;
/** How long an asker may take to read the answer, and the agent to give it. */
const TIMEOUT_MS = 5_000;
/** Longest answer that is read. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** Answers whoever connects to a unix socket of the state directory with one JSON text. */
export interface StatusSocket {
  /** Rejects with a {@link CommandError}. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** @param read makes the answer; when it rejects, the asker is told why */
export function createStatusSocket(stateDirectory: string, read: () => Promise<object>): StatusSocket {
  const path = join(stateDirectory, SOCKET_NAME);
  const sockets = new Set<Socket>();
  let server: Server | undefined;

  const answer = async (socket: Socket): Promise<void> => {
    let text: string;
    try {
      text = JSON.stringify(await read());
    } catch (error) {
      text = JSON.stringify({ error: error instanceof Error ? error.message : String(error) });
    }
    socket.end(text);
  };

  return {
    async start() {
      // Whoever holds the owner's lock may take the place of an agent that was killed.
      await rm(path, { force: true });
      server = createServer((socket) => {
        sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => sockets.delete(socket));
        socket.setTimeout(TIMEOUT_MS, () => socket.destroy());
        socket.resume();
        void answer(socket);
      });
      server.maxConnections = MAX_CONNECTIONS;
      const listening = Promise.withResolvers<undefined>();
      server.once('error', listening.reject);
      const mask = process.umask(0o177);
      server.listen(path, () => listening.resolve(undefined));
      process.umask(mask);
      try {
        await listening.promise;
      } catch (cause) {
        throw new CommandError(
          `cannot listen on ${path} (${problemOf(cause)}): --state-dir names a directory with a short path`,
          { cause },
        );
      }
      server.on('error', () => undefined);
    },
    async stop() {
      if (server === undefined) return;
      const closed = Promise.withResolvers<undefined>();
      server.close(() => closed.resolve(undefined));
      for (const socket of sockets) socket.destroy();
      await closed.promise;
    },
  };
}

/**
 * What the agent of a state directory tells; undefined if none answers there. Rejects with a {@link CommandError} for
 * an answer that is none.
 */
export async function askStatus(stateDirectory: string): Promise<unknown> {
  const path = join(stateDirectory, SOCKET_NAME);
  const socket = createConnection({ path });
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) throw new Error('the answer is too long');
      chunks.push(chunk);
    }
    const answer: unknown = JSON.parse(Buffer.concat(chunks).toString());
    if (typeof answer === 'object' && answer !== null && 'error' in answer)
      throw new Error(String(answer.error));
    return answer;
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return undefined;
    throw new CommandError(`the agent at ${path} does not tell its status: ${problemOf(cause)}`, { cause });
  } finally {
    socket.destroy();
  }
}
