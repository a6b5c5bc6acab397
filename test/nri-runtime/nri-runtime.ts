import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

const LOG_TAIL_CHARACTERS = 20_000;
const SHOWN_LOG_CHARACTERS = 2_000;

export interface NriRuntimeOptions {
  /** The built program. */
  readonly program: string;
  readonly socketPath: string;
  /** In which a plugin has to answer; NRI's default of 2 s when left out. */
  readonly requestTimeoutMs?: number;
  /** How many there are; 1 when left out. Container n is in pod n modulo the number of pods. */
  readonly pods?: number;
  readonly containers?: number;
  /** Bytes of an annotation that each container has. */
  readonly padding?: number;
  /** The end of every pod's and container's name. */
  readonly suffix?: string;
}

export interface Told {
  readonly durationMs: number;
  /** Why it failed, in the runtime's words. */
  readonly error?: string;
}

/** A process that is a container runtime to its plugins. Container numbers are below `containers`. */
export interface NriRuntime {
  /** The next Synchronize that has not been asked for yet, also if it has come already. */
  synchronized(): Promise<Told>;
  startContainer(container: number): Promise<Told>;
  removeContainer(container: number): Promise<Told>;
  /** The end of what NRI logged. */
  log(): string;
  /** @param how `SIGKILL` leaves the socket's file behind, as a crashed runtime does */
  stop(how?: 'orderly' | 'SIGKILL'): Promise<void>;
}

/**
 * Starts the runtime side and waits until it listens. It ends with this process.
 *
 * @throws Error with its log when it ends before
 */
export async function startNriRuntime(options: NriRuntimeOptions): Promise<NriRuntime> {
  const empty = join(dirname(options.socketPath), 'no-plugins');
  await mkdir(empty, { recursive: true });
  const child = spawn(options.program, argumentsFor(options, empty), { stdio: 'pipe' });
  const log = tailOf(child.stderr);
  const talk = conversation(child, log);
  await talk.nextEvent('listening');
  return {
    synchronized: async () => await talk.nextEvent('synchronized'),
    startContainer: async (container) => await talk.ask('start', container),
    removeContainer: async (container) => await talk.ask('remove', container),
    log,
    async stop(how = 'orderly') {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const closed = once(child, 'close');
      if (how === 'SIGKILL') child.kill('SIGKILL');
      else child.stdin.end();
      await closed;
    },
  };
}

function argumentsFor(options: NriRuntimeOptions, empty: string): string[] {
  const { requestTimeoutMs, pods = 1, containers = 1, padding = 0, suffix = '' } = options;
  return [
    `--socket=${options.socketPath}`,
    `--empty=${empty}`,
    ...(requestTimeoutMs === undefined ? [] : [`--request-timeout=${requestTimeoutMs}ms`]),
    `--pods=${pods}`,
    `--containers=${containers}`,
    `--padding=${padding}`,
    `--suffix=${suffix}`,
  ];
}

interface Line extends Told {
  readonly id?: number;
  readonly event?: string;
}

/** Asks over the program's standard input and sorts what it tells on its standard output. */
function conversation(child: ChildProcessByStdio<Writable, Readable, Readable>, log: () => string) {
  const answers = new Map<number, (line: Line) => void>();
  const events: Line[] = [];
  const arrivals = new EventEmitter();
  let lastId = 0;

  createInterface({ input: child.stdout }).on('line', (text) => {
    const line = JSON.parse(text) as Line;
    if (line.id !== undefined) {
      answers.get(line.id)?.(line);
      answers.delete(line.id);
      return;
    }
    events.push(line);
    arrivals.emit('event');
  });
  const ended = once(child, 'close').then((): never => {
    throw new Error(`the runtime side of NRI has ended:\n${log().slice(-SHOWN_LOG_CHARACTERS)}`);
  });
  ended.catch(() => undefined);

  return {
    async nextEvent(name: string): Promise<Told> {
      for (;;) {
        const index = events.findIndex(({ event }) => event === name);
        const [found] = index < 0 ? [] : events.splice(index, 1);
        if (found !== undefined) return found;
        await Promise.race([once(arrivals, 'event'), ended]);
      }
    },
    async ask(what: 'start' | 'remove', container: number): Promise<Told> {
      const id = ++lastId;
      const answer = Promise.withResolvers<Line>();
      answers.set(id, answer.resolve);
      child.stdin.write(`${JSON.stringify({ id, do: what, container })}\n`);
      return await Promise.race([answer.promise, ended]);
    },
  };
}

function tailOf(stream: Readable): () => string {
  let tail = '';
  stream.on('data', (chunk: Buffer) => (tail = (tail + chunk.toString()).slice(-LOG_TAIL_CHARACTERS)));
  return () => tail;
}
