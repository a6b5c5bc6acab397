import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';

const GAP = '   ';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  /** Shown with `-o wide` only. */
  readonly wide?: boolean;
  /** Paints a cell that has its width already. */
  readonly paint?: (text: string, row: Row) => string;
}

export interface TableOptions {
  readonly wide?: boolean;
  readonly headers?: boolean;
}

/**
 * Lines of a table as kubectl draws it: titles in capitals, columns three spaces apart, nothing behind the last. Every
 * cell is one line without characters that a terminal acts on.
 */
export function formatTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { wide = false, headers = true }: TableOptions = {},
): string {
  const shown = columns.filter((column) => wide || column.wide !== true);
  const cells = rows.map((row) =>
    shown.map(({ cell }) => {
      const text = escapeUnprintable(cell(row));
      return text === '' ? '<none>' : text;
    }),
  );
  const widths = shown.map(({ title }, index) => {
    let width = headers ? title.length : 0;
    for (const line of cells) width = Math.max(width, widthOf(line[index] ?? ''));
    return width;
  });
  const pad = (text: string, index: number) =>
    index === shown.length - 1 ? text : text + ' '.repeat((widths[index] ?? 0) - widthOf(text));
  const lines = cells.map((line, at) =>
    line
      .map((text, index) => {
        const padded = pad(text, index);
        const row = rows[at];
        const paint = shown[index]?.paint;
        return paint === undefined || row === undefined ? padded : paint(padded, row);
      })
      .join(GAP),
  );
  if (headers) lines.unshift(shown.map(({ title }, index) => pad(title, index)).join(GAP));
  return lines.map((line) => `${line}\n`).join('');
}

/** Characters of East Asian scripts and most symbols take two columns (Unicode's East Asian Width). */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}]|[\u{20000}-\u{3fffd}]/gu;
const COMBINING = /\p{Mn}/gu;
const ASCII = /^[ -~]*$/;

function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  const combining = text.match(COMBINING)?.length ?? 0;
  return Array.from(text).length + (text.match(WIDE)?.length ?? 0) - combining;
}
