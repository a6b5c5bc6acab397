import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { REPOSITORY } from '../vm/repository.ts';
import type { PluginRunner } from './plugin-runner.ts';

/** A command as somebody types it, and what is shown. */
interface SessionStep {
  readonly command: string;
  readonly shown: string;
}

/** A session that is being played. */
export interface PlayedSession {
  readonly steps: readonly SessionStep[];
  /**
   * Types a command of the plugin, and keeps what it shows in the order in which it is shown.
   *
   * @param code what it is expected to end with
   */
  readonly enforcer: (args: string, code?: number) => Promise<void>;
}

/** @param cwd where the lines are typed; the checkout when left out */
export function playSession(shell: Pick<PluginRunner, 'command'>, cwd = REPOSITORY): PlayedSession {
  const steps: SessionStep[] = [];
  return {
    steps,
    async enforcer(args, expected = 0) {
      const command = `kubectl runtime-enforcer ${args}`;
      const { code, stdout } = await shell.command(`${command} 2>&1`, { cwd });
      steps.push({ command, shown: stdout });
      expect({ command, code }, stdout).toEqual({ command, code: expected });
    },
  };
}

/** Where the sessions stand that the tests play. */
const DOCUMENT = join(REPOSITORY, 'docs/plugin.md');
/** Writes what the commands show into the document, instead of comparing. */
const WRITES_SESSION = process.env['RUNTIME_ENFORCER_WRITE_SESSION'] === 'true';
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
function sessionText(steps: readonly SessionStep[]): string {
  const shown = steps.map((step) => steady(`$ ${step.command}\n${step.shown}`));
  return `\`\`\`console\n${shown.join('\n')}\`\`\`\n`;
}

/** Expects docs/plugin.md to show what the commands of a session have shown just now. */
export async function checkSession(name: string, { steps }: PlayedSession, ring = 'kubectl'): Promise<void> {
  const document = await readFile(DOCUMENT, 'utf8');
  const line = `<!-- session ${name}: made by the ${ring} ring -->`;
  const current = withSession(document, line, steps);
  if (WRITES_SESSION) await writeFile(DOCUMENT, current);
  else expect(document, 'write it anew with RUNTIME_ENFORCER_WRITE_SESSION=true').toBe(current);
}

/** The commands that the document lists, and the lines of them that it shows the output of. */
export async function documentedCommands(): Promise<Readonly<Record<'listed' | 'shown', readonly string[]>>> {
  const document = await readFile(DOCUMENT, 'utf8');
  const found = (pattern: RegExp): readonly string[] =>
    [...document.matchAll(pattern)].map(([, words = '']) => words);
  return {
    listed: found(/^### `([a-z]+(?: [a-z]+)*)/gm),
    shown: found(/^\$ kubectl runtime-enforcer (.*)$/gm),
  };
}

/** A document with one of its sessions made anew. Throws where it has no place for it. */
function withSession(document: string, line: string, steps: readonly SessionStep[]): string {
  const start = document.indexOf(line);
  const end = document.indexOf(SESSION_END, start);
  if (start < 0 || end < start) throw new Error(`the document has no lines ${line} and ${SESSION_END}`);
  const before = document.slice(0, start + line.length);
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
