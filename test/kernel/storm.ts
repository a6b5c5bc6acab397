import type { Place } from './bound-place.ts';

/** What became of the execs of one path. */
export interface StormCounts {
  readonly ran: number;
  readonly denied: number;
  readonly other: number;
}

export interface StormResult {
  /** All zero for a path that was no part of it. */
  of(path: string): StormCounts;
}

/** What a machine that runs several guests at least does of one path in some seconds. */
export const STORM_MIN = 25;

const NOTHING: StormCounts = { ran: 0, denied: 0, other: 0 };

/**
 * Runs loops of execs in a place for some seconds, or until options of the guest program execstorm end it.
 * @param loops as execstorm takes them: paths, and options in front
 */
export async function startStorm(
  place: Place,
  seconds: number,
  ...loops: readonly string[]
): Promise<StormResult> {
  const { code, stdout, stderr } = await place.enter('execstorm', '--seconds', String(seconds), ...loops);
  // The programs that ran may have written something in front.
  const report = stdout.slice(Math.max(0, stdout.lastIndexOf('{"seconds"')));
  if (code !== 0 || report === '') throw new Error(`execstorm ended with ${code}: ${stdout}${stderr}`);
  const { paths } = JSON.parse(report) as { paths: Readonly<Record<string, StormCounts>> };
  return { of: (path) => paths[path] ?? NOTHING };
}
