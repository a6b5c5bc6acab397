/** A command as somebody types it, and what is shown. */
export interface SessionStep {
  readonly command: string;
  readonly shown: string;
}

/** Between these lines of a document stands a session. */
const SESSION_START = '<!-- session: made by test/kubectl/quick-start.api.test.ts -->';
const SESSION_END = '<!-- end of session -->';

const GAP = '   ';
/** As kubectl shows ages: `12s`, `5m3s`. */
const AGE = /^(?:\d+[smhd]){1,2}$/;
/** What a ReplicaSet adds to the name of a Deployment for each pod. */
const POD_SUFFIX = /-[0-9a-f]{7,10}-[a-z0-9]{5}\b/g;
const SAME_SUFFIX = '-5d8f7c9b64-x2x4l';
/** How often it is told depends on the machine. */
const PROGRESS = 'Waiting: ';
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const SAME_TIME = '2026-01-31T12:00:00Z';

/** The session in Markdown, the same for every run: names that are drawn, ages and times stand for all others. */
export function sessionText(steps: readonly SessionStep[]): string {
  const shown = steps.map((step) => steady(`$ ${step.command}\n${step.shown}`));
  return `\`\`\`console\n${shown.join('\n')}\`\`\`\n`;
}

/** A document with its session made anew. Throws where it has no place for one. */
export function withSession(document: string, steps: readonly SessionStep[]): string {
  const start = document.indexOf(SESSION_START);
  const end = document.indexOf(SESSION_END);
  if (start < 0 || end < start)
    throw new Error(`the document has no lines ${SESSION_START} and ${SESSION_END}`);
  const before = document.slice(0, start + SESSION_START.length);
  return `${before}\n\n${sessionText(steps)}\n${document.slice(end)}`;
}

function steady(output: string): string {
  const same = output.replaceAll(POD_SUFFIX, SAME_SUFFIX).replaceAll(TIME, SAME_TIME);
  const lines = same.split('\n').filter((line) => !line.startsWith(PROGRESS));
  const tables: string[][][] = [];
  for (const [index, line] of lines.entries()) {
    if (!line.includes(GAP)) continue;
    const cells = line.split(/ {3,}/).map((cell) => (AGE.test(cell) ? '1m' : cell));
    const isSameTable = index > 0 && (lines[index - 1] ?? '').includes(GAP);
    if (isSameTable) tables.at(-1)?.push(cells);
    else tables.push([cells]);
  }
  const drawn = tables.flatMap(drawnTable).values();
  return lines.map((line) => (line.includes(GAP) ? (drawn.next().value ?? '') : line)).join('\n');
}

function drawnTable(rows: readonly (readonly string[])[]): string[] {
  const widths = Array.from({ length: Math.max(...rows.map((row) => row.length)) }, (_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}
