import type { KernelProgram } from '@runtime-enforcer/agent/kernel/native';
import { median } from './figure.ts';

/** One round starts the program once so often and once so often more; the difference is free of what starts it. */
const FEW = 20;
const MORE = 200;
/** Rounds per measurement: what disturbs one of them is not in the median. */
const ROUNDS = 3;
/** Two measurements of the same may differ by this much: chains of hash tables have other lengths then. */
const REPEATS_WITHIN = 5;

/** Starts a program `count` times, and says what became of it. */
export type Storm = (count: number) => Promise<StormCounts>;

export interface StormCounts {
  readonly ran: number;
  readonly denied: number;
  readonly other: number;
}

/** Reads the counts of execstorm's only path. Throws an Error if the output is something else. */
export function parseStorm(output: string): StormCounts {
  const parsed = JSON.parse(output) as { readonly paths: Readonly<Record<string, StormCounts>> };
  const [counts] = Object.values(parsed.paths);
  if (counts === undefined) throw new Error(`execstorm wrote no counts: ${output}`);
  return counts;
}

/**
 * Nanoseconds, which in an instruction-counted guest are instructions, that all `programs` take together per exec of
 * the storm. Measured twice over.
 *
 * @param expected what is to become of every exec; anything else means that something else was measured
 * @throws Error where an exec was not seen by every program, went otherwise, or the two measurements differ
 */
export async function costPerExec(
  programs: readonly KernelProgram[],
  storm: Storm,
  expected: 'ran' | 'denied',
): Promise<number> {
  const first = await measure(programs, storm, expected);
  const second = await measure(programs, storm, expected);
  if (Math.abs(first - second) > REPEATS_WITHIN)
    throw new Error(`the figure does not repeat: ${first}, then ${second} per exec`);
  return (first + second) / 2;
}

async function measure(
  programs: readonly KernelProgram[],
  storm: Storm,
  expected: 'ran' | 'denied',
): Promise<number> {
  const costs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const few = await timeOf(programs, storm, FEW, expected);
    const more = await timeOf(programs, storm, FEW + MORE, expected);
    costs.push((more - few) / MORE);
  }
  return median(costs);
}

async function timeOf(
  programs: readonly KernelProgram[],
  storm: Storm,
  count: number,
  expected: 'ran' | 'denied',
): Promise<number> {
  const before = programs.map((program) => program.info());
  const counts = await storm(count);
  const after = programs.map((program) => program.info());
  if (counts[expected] !== count)
    throw new Error(`of ${count} execs that should have ${expected}: ${JSON.stringify(counts)}`);
  return after.reduce((sum, info, index) => {
    const start = before[index];
    // The program that starts the others is one more.
    const runs = info.runCount - (start?.runCount ?? 0n);
    if (runs !== BigInt(count) + 1n)
      throw new Error(
        `program ${programs[index]?.name ?? ''} ran ${runs} times for ${count + 1} execs; is kernel.bpf_stats_enabled 1?`,
      );
    return sum + Number(info.runTimeNs - (start?.runTimeNs ?? 0n));
  }, 0);
}
