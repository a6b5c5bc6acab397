import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cacheDirectory } from './cache.ts';
import type { GuestOutput } from './guest-output.ts';
import type { Progress } from './progress.ts';

const DEFAULT_PLACES = 2;
/** An exit code that QEMU itself never has: the lock of this place is taken. */
const PLACE_TAKEN = 75;
const PLACE_RETRY_MS = 300;
/** A guest that said how its command ended and still runs after this long has nothing more to tell. */
const POWER_OFF_MS = 10_000;
const STDERR_TAIL_CHARACTERS = 4_000;
const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export interface GuestProcess {
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  /** The run's own files, removed when a signal ends this process. */
  directory: string;
  output: GuestOutput;
  timeoutMs: number;
  progress: Progress;
  signal?: AbortSignal;
}

export interface GuestEnd {
  timedOut: boolean;
  /** What QEMU wrote to its standard error. */
  stderr: string;
  durationMs: number;
}

/**
 * Runs QEMU until its guest powers off. It holds one of the machine's places for guests (2, or
 * `RUNTIME_ENFORCER_GUESTS`) as long as it lives, and the kernel ends it when this process ends.
 */
export async function runGuestProcess(guest: GuestProcess): Promise<GuestEnd> {
  const locks = join(cacheDirectory(), 'locks');
  await mkdir(locks, { recursive: true });
  const places = guestPlaces();
  let told = false;
  for (;;) {
    for (let place = 0; place < places; place++) {
      const end = await attempt(guest, join(locks, `guest-${place}`));
      if (end !== undefined) return end;
    }
    if (!told) guest.progress(`waiting: ${places} guests run on this machine (RUNTIME_ENFORCER_GUESTS)`);
    told = true;
    await sleep(PLACE_RETRY_MS);
  }
}

/** How many guests run on this machine at a time. @throws RangeError for a variable that is no such number */
export function guestPlaces(): number {
  const text = process.env['RUNTIME_ENFORCER_GUESTS'];
  if (text === undefined) return DEFAULT_PLACES;
  const places = Number(text);
  if (!Number.isInteger(places) || places < 1) {
    throw new RangeError(
      `RUNTIME_ENFORCER_GUESTS is ${JSON.stringify(text)}: expected a whole number from 1 on`,
    );
  }
  return places;
}

async function attempt(guest: GuestProcess, place: string): Promise<GuestEnd | undefined> {
  const start = performance.now();
  // setpriv asks the kernel to end QEMU with us; flock becomes QEMU, so the place is free exactly when QEMU is gone.
  const dieWithParent = ['--pdeathsig', 'KILL'];
  const holdPlace = ['flock', '--nonblock', '--no-fork', '--conflict-exit-code', String(PLACE_TAKEN), place];
  const child = spawn('setpriv', [...dieWithParent, ...holdPlace, ...guest.argv], {
    env: { ...process.env, ...guest.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const end = (): void => void child.kill('SIGKILL');
  guest.signal?.addEventListener('abort', end);
  if (guest.signal?.aborted === true) end();
  const forgetSignals = endOnSignals(child, guest.directory);
  let stderr = '';
  let timedOut = false;
  let powerOff: NodeJS.Timeout | undefined;
  const deadline = setTimeout(() => {
    timedOut = true;
    child.kill('SIGKILL');
  }, guest.timeoutMs);
  child.stdout.on('data', (chunk: Buffer) => {
    guest.output.push(chunk);
    if (guest.output.exitCode === undefined) return;
    clearTimeout(deadline);
    powerOff ??= setTimeout(() => child.kill('SIGKILL'), POWER_OFF_MS);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-STDERR_TAIL_CHARACTERS);
  });
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    if (code === PLACE_TAKEN) return undefined;
    return { timedOut, stderr, durationMs: performance.now() - start };
  } finally {
    clearTimeout(deadline);
    clearTimeout(powerOff);
    guest.signal?.removeEventListener('abort', end);
    forgetSignals();
    child.kill('SIGKILL');
  }
}

function endOnSignals(child: ChildProcess, directory: string): () => void {
  const end = (signal: NodeJS.Signals): void => {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
    forget();
    process.kill(process.pid, signal);
  };
  const forget = (): void => {
    for (const signal of ENDING_SIGNALS) process.off(signal, end);
  };
  for (const signal of ENDING_SIGNALS) process.on(signal, end);
  return forget;
}
