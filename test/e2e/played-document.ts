/** A command as a page shows it, and lines of what it prints. */
export interface PlayedCommand {
  readonly command: string;
  /** In order; `…` stands for anything, any white space for any other. */
  readonly expected: readonly string[];
}

/** A section of a page. */
export interface PlayedSection {
  readonly title: string;
  /** Sentences and commands in the order in which they stand there. */
  readonly parts: readonly (string | PlayedCommand)[];
}

const PROMPT = '$ ';
const ANYTHING = '…';
const HERE_DOCUMENT = /<<'(\w+)'$/;

/**
 * The sections of a page that have commands: blocks of the language `console`, in which a command stands behind `$ `,
 * with the lines of its here-document, and below it what it prints.
 *
 * @throws Error for a block that does not begin with a command, or a here-document without an end
 */
export function playedSections(markdown: string): readonly PlayedSection[] {
  const [, ...sections] = markdown.split(/^## /m);
  return sections
    .map((text) => {
      const [title = '', ...lines] = text.split('\n');
      return { title, parts: partsOf(lines) };
    })
    .filter(({ parts }) => parts.some((part) => typeof part !== 'string'));
}

function partsOf(lines: readonly string[]): (string | PlayedCommand)[] {
  const parts: (string | PlayedCommand)[] = [];
  let paragraph: string[] = [];
  const endParagraph = (): void => {
    if (paragraph.length > 0) parts.push(paragraph.join(' '));
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (!line.startsWith('```')) {
      if (line === '') endParagraph();
      else paragraph.push(line);
      continue;
    }
    endParagraph();
    const end = lines.indexOf('```', at + 1);
    if (line === '```console') parts.push(...commandsOf(lines.slice(at + 1, end)));
    at = end;
  }
  endParagraph();
  return parts;
}

function commandsOf(lines: readonly string[]): PlayedCommand[] {
  const commands: PlayedCommand[] = [];
  for (let at = 0; at < lines.length;) {
    const first = lines[at] ?? '';
    if (!first.startsWith(PROMPT)) throw new Error(`expected a command behind "${PROMPT}": ${first}`);
    const [, mark] = HERE_DOCUMENT.exec(first) ?? [];
    const end = mark === undefined ? at : lines.indexOf(mark, at);
    if (end < 0) throw new Error(`expected a line ${mark ?? ''} below: ${first}`);
    const next = lines.findIndex((line, index) => index > end && line.startsWith(PROMPT));
    const until = next < 0 ? lines.length : next;
    commands.push({
      command: lines
        .slice(at, end + 1)
        .join('\n')
        .slice(PROMPT.length),
      expected: lines.slice(end + 1, until).filter((line) => line.trim() !== ''),
    });
    at = until;
  }
  return commands;
}

/** The first of the expected lines that what a command printed does not hold behind those before; undefined for none. */
export function missingLine(expected: readonly string[], printed: string): string | undefined {
  const lines = printed.split('\n').map(collapsed);
  let from = 0;
  for (const line of expected) {
    const found = lines.findIndex((each, index) => index >= from && isShownBy(collapsed(line), each));
    if (found < 0) return line;
    from = found + 1;
  }
  return undefined;
}

function isShownBy(pattern: string, line: string): boolean {
  const [first = '', ...rest] = pattern.split(ANYTHING);
  const last = rest.pop();
  if (last === undefined) return line === first;
  if (!line.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = line.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return line.length - last.length >= at && line.endsWith(last);
}

function collapsed(line: string): string {
  return line.trim().replaceAll(/\s+/g, ' ');
}
