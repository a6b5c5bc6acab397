const BASE_MS = 500;
const MAX_MS = 30_000;

/**
 * Milliseconds to wait before the next try: up to 30 seconds, half of it by chance, so that the peers of a server
 * that comes back do not come all at once.
 *
 * @param failures in a row, from 1 on
 * @param chance from 0 to below 1
 */
export function reconnectDelayMs(failures: number, chance: number): number {
  const most = Math.min(MAX_MS, BASE_MS * 2 ** Math.min(failures - 1, 16));
  return Math.round(most * (0.5 + chance / 2));
}
