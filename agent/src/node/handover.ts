import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { CommandError } from '../commands/command-error.ts';
import { problemOf } from './bounded-file.ts';
import { isIdentity, type AgentIdentity } from './agent-identity.ts';

/** How long one who connects may take to say what it wants. */
const REQUEST_MS = 5_000;
/** How long an owner may take to answer. */
const ANSWER_MS = 5_000;
/** How long the new owner may take to take the lock that is free. */
const TAKE_MS = 10_000;
const MAX_CONNECTIONS = 4;
/** What the successor says to an owner that is willing. */
const GO = 'go';
const MAX_LINE_BYTES = 16 * 1024;

/** Who can be asked for a node, beside the lock that says who owns it. Root of the node only may connect. */
export function handoverPath(lockPath: string): string {
  return join(dirname(lockPath), 'handover.sock');
}

/** Where the owner of a node can be asked to hand it over. */
export interface HandoverSocket {
  /** Rejects with a {@link CommandError}. */
  start(): Promise<void>;
  /** Nobody can ask from then on; who has asked is still answered. */
  stop(): void;
}

/**
 * @param refuse says why a successor does not get the node; undefined: it does
 * @param predecessors the pods of those who owned the node before, this agent included
 * @param handOver gives everything up, the lock last; called at most once. `taken` resolves when the successor has the
 *   lock, or will not get it
 */
export function createHandoverSocket(parts: {
  path: string;
  refuse: (successor: AgentIdentity) => string | undefined;
  predecessors: () => readonly string[];
  handOver: (successor: AgentIdentity, taken: Promise<void>) => Promise<void>;
}): HandoverSocket {
  const { path, refuse, predecessors, handOver } = parts;
  let server: Server | undefined;
  let isOver = false;

  const stop = (): void => {
    server?.close();
    server = undefined;
  };
  const serve = async (socket: Socket): Promise<void> => {
    const successor = await readLine(socket, REQUEST_MS);
    if (!isIdentity(successor)) {
      socket.destroy();
      return;
    }
    const refused = isOver ? 'another agent has asked before' : refuse(successor);
    if (refused !== undefined) {
      socket.end(`${JSON.stringify({ refused })}\n`);
      return;
    }
    socket.write(`${JSON.stringify({ predecessors: predecessors() })}\n`);
    // One who was asked long ago, while this process stood still, is not there any more.
    if ((await readLine(socket, REQUEST_MS)) !== GO || isOver) {
      socket.destroy();
      return;
    }
    isOver = true;
    // The successor listens under the same name.
    stop();
    const taken = Promise.withResolvers<undefined>();
    socket.on('close', () => taken.resolve(undefined));
    try {
      await handOver(successor, taken.promise);
      setTimeout(() => socket.destroy(), TAKE_MS).unref();
    } catch {
      socket.destroy();
    }
  };

  return {
    async start() {
      // Left by an agent that was killed: whoever holds the lock may take its place.
      await rm(path, { force: true });
      const listener = createServer((socket) => {
        socket.on('error', () => undefined);
        serve(socket).catch(() => socket.destroy());
      });
      listener.maxConnections = MAX_CONNECTIONS;
      const listening = Promise.withResolvers<undefined>();
      listener.once('error', listening.reject);
      const mask = process.umask(0o177);
      listener.listen(path, () => listening.resolve(undefined));
      process.umask(mask);
      try {
        await listening.promise;
      } catch (cause) {
        throw new CommandError(
          `cannot listen on ${path} (${problemOf(cause)}), where the next agent asks for this node: ` +
            'make its directory writable for this agent',
          { cause },
        );
      }
      listener.on('error', () => undefined);
      server = listener;
    },
    stop,
  };
}

/** What came of asking for a node. */
export type HandoverAnswer =
  /** It stops now, and frees the lock then. `ended` resolves when `done` has aborted, or the owner gave it up. */
  | { readonly kind: 'accepted'; readonly predecessors: readonly string[]; readonly ended: Promise<void> }
  | { readonly kind: 'refused'; readonly reason: string }
  /** Nobody listens: the owner is starting, ending, or cannot be asked. */
  | { readonly kind: 'nobody' }
  /** It keeps the node. */
  | { readonly kind: 'silent'; readonly reason: string };

/**
 * Asks the owner of a node to hand it over. `done` aborts when the lock was taken, or nobody wants it any more: an owner
 * that has freed it takes it back then if it still can. Never rejects.
 */
export async function askForNode(parts: {
  path: string;
  self: AgentIdentity;
  done: AbortSignal;
  answerMs?: number;
}): Promise<HandoverAnswer> {
  const { path, self, done, answerMs = ANSWER_MS } = parts;
  const socket = createConnection({ path });
  const problem = Promise.withResolvers<Error>();
  const connected = Promise.withResolvers<undefined>();
  const ended = Promise.withResolvers<undefined>();
  socket.on('close', () => ended.resolve(undefined));
  socket.on('connect', () => connected.resolve(undefined));
  socket.on('error', (error) => problem.resolve(error));
  const first = await Promise.race([connected.promise, problem.promise]);
  if (first instanceof Error) return { kind: 'nobody' };
  const leave = (): void => void socket.destroy();
  done.addEventListener('abort', leave);
  if (done.aborted) leave();
  socket.write(`${JSON.stringify(self)}\n`);
  const answer = await readLine(socket, answerMs).catch((error: unknown) => problemOf(error));
  if (typeof answer === 'object' && answer !== null) {
    if ('predecessors' in answer && Array.isArray(answer.predecessors)) {
      socket.write(`${JSON.stringify(GO)}\n`);
      return { kind: 'accepted', predecessors: answer.predecessors.map(String), ended: ended.promise };
    }
    if ('refused' in answer) {
      leave();
      return { kind: 'refused', reason: String(answer.refused) };
    }
  }
  leave();
  return { kind: 'silent', reason: typeof answer === 'string' ? answer : 'its answer is not understood' };
}

/** The JSON of the first line. Rejects where there is none in time. */
async function readLine(socket: Socket, timeoutMs: number): Promise<unknown> {
  const line = Promise.withResolvers<string>();
  let text = '';
  const onData = (chunk: Buffer): void => {
    text += chunk.toString();
    const end = text.indexOf('\n');
    if (end >= 0) line.resolve(text.slice(0, end));
    else if (text.length > MAX_LINE_BYTES) line.reject(new Error('it is longer than a line may be'));
  };
  const onClose = (): void => line.reject(new Error('the connection ended without an answer'));
  const timer = setTimeout(() => line.reject(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
  socket.on('data', onData);
  socket.on('close', onClose);
  try {
    return JSON.parse(await line.promise) as unknown;
  } finally {
    clearTimeout(timer);
    socket.off('data', onData);
    socket.off('close', onClose);
    // Whatever comes later is of no interest, and its end has to be noticed.
    socket.resume();
  }
}
