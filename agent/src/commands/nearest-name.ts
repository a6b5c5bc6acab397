/** Longest name that is compared. */
const MAX_CHARACTERS = 64;

/** The known name that a mistyped one most likely means, if one is near enough to say so. */
export function nearestName(typed: string, known: readonly string[]): string | undefined {
  if (typed === '' || typed.length > MAX_CHARACTERS) return undefined;
  const beginning = known.filter((name) => name.startsWith(typed));
  if (beginning.length === 1) return beginning[0];
  let nearest: string | undefined;
  let best = Math.max(1, Math.floor(typed.length / 3)) + 1;
  for (const name of known) {
    const distance = editDistance(typed, name);
    if (distance < best) [nearest, best] = [name, distance];
  }
  return nearest;
}

/** Fewest single-character changes that turn one text into the other (Levenshtein). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let line = 1; line <= from.length; line++) {
    const next = [line];
    for (let column = 1; column <= to.length; column++) {
      const substituted = (row[column - 1] ?? 0) + (from[line - 1] === to[column - 1] ? 0 : 1);
      next.push(Math.min(substituted, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
