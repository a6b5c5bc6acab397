/** What became of the execs of one path in a run of the guest program execstorm. */
export interface StormCounts {
  readonly ran: number;
  readonly denied: number;
  readonly other: number;
}

/**
 * The counts of a path in what execstorm printed.
 *
 * @throws Error if the path was no part of it
 */
export function stormCounts(output: string, path: string): StormCounts {
  const { paths } = JSON.parse(output) as { paths: Readonly<Record<string, StormCounts>> };
  const counts = paths[path];
  if (counts === undefined) throw new Error(`execstorm did not start ${path}: ${output}`);
  return counts;
}
