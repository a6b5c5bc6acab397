import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Narration } from '../demo/narration.ts';
import { TOOLBOX_IMAGE } from '../images/names.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { writeTestValues } from './installation.ts';
import { missingLine, type PlayedCommand, type PlayedSection, playedSections } from './played-document.ts';
import type { WholeCluster } from './whole-cluster.ts';

/** What the pages have their readers run; the tests' own image has its programs in the same places. */
const PAGE_IMAGE = 'debian:stable-slim';
const COMMAND_LIMIT_MS = 300_000;
/** How long a command that only asks is repeated until it shows what the page says. */
const SEEN_BUDGET_MS = 120_000;
const RETRY_MS = 1_000;
const QUESTION = new RegExp(
  '^kubectl (-n \\S+ )?(get|exec|logs|runtime-enforcer ' +
    '(status|doctor|violations|explain|proposal (list|review)|policy (list|show)))\\b',
);

/** The sections of a page of the documentation, by the name of its file in `docs`. */
export async function pageSections(file: string): Promise<readonly PlayedSection[]> {
  return playedSections(await readFile(join(REPOSITORY, 'docs', file), 'utf8'));
}

/**
 * Does what a section says on a cluster, as its administrator, and tells it.
 *
 * @throws Error with the command and what it printed where that is not what the page says
 */
export async function playSection(
  cluster: WholeCluster,
  section: PlayedSection,
  tell: Narration,
): Promise<void> {
  tell.step(section.title);
  for (const part of section.parts) {
    if (typeof part === 'string') tell.say(part);
    else tell.show(part.command, await playCommand(cluster, part));
  }
}

async function playCommand(cluster: WholeCluster, { command, expected }: PlayedCommand): Promise<string> {
  const line = await forThisCluster(cluster, command);
  const end = performance.now() + (QUESTION.test(command) ? SEEN_BUDGET_MS : 0);
  for (;;) {
    const { code, stdout, stderr } = await cluster.user.command(line, { limitMs: COMMAND_LIMIT_MS });
    const printed = `${stdout}${stderr}`;
    const missing = missingLine(expected, printed);
    // A page shows what a command says that fails.
    if (missing === undefined && (code === 0 || expected.length > 0)) return printed;
    if (performance.now() > end) {
      const wanted = missing === undefined ? 'exit code 0' : `the line: ${missing}`;
      throw new Error(`${command}\nended with code ${String(code)}; expected ${wanted}\n${printed}`);
    }
    await delay(RETRY_MS);
  }
}

/** There is no registry here, and an emulated machine needs more time than the chart gives. */
async function forThisCluster(cluster: WholeCluster, command: string): Promise<string> {
  const line = command.replaceAll(PAGE_IMAGE, TOOLBOX_IMAGE);
  return line.startsWith('helm install ') ? `${line} --values ${await writeTestValues(cluster)}` : line;
}
