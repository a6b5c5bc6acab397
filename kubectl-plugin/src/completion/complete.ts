import type { KubeFlags } from '../cluster/kube-flags.ts';
import type { CommandContext } from '../command-context.ts';
import { isPlainWord } from '../output/shell-word.ts';
import type { CommandSpec } from '../tree/command-spec.ts';
import { type Candidate, completable, type Completable } from './command-line.ts';

/** What cobra's completion protocol ends with: names of files are no candidates, or are what is wanted. */
const NO_FILES = ':4\n';
const FILES = ':0\n';

/** A shell waits for the answer. */
const REQUEST_TIMEOUT = '3s';
const MAX_CANDIDATES = 1_000;
/** What a terminal acts on. */
const SPECIAL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * Answers kubectl's completion program: a candidate a line, with a tab before its description, and a directive at the
 * end. Whatever goes wrong, there are just no candidates.
 *
 * @param words behind `kubectl runtime-enforcer`; the last one may be empty
 */
export async function complete(
  words: readonly string[],
  root: CommandSpec,
  openContext: (flags: KubeFlags) => CommandContext,
): Promise<string> {
  const found = completable(words, root);
  if (found.source === 'files') return FILES;
  const asked = await candidatesOf(found, openContext);
  const candidates = [...found.candidates, ...asked]
    // The shell puts a word where it reads a command: one that a tenant has thought of must mean nothing else there.
    .filter(({ word }) => word.startsWith(found.prefix) && isPlainWord(word))
    .slice(0, MAX_CANDIDATES);
  return candidates.map(lineOf).join('') + NO_FILES;
}

async function candidatesOf(
  found: Completable,
  openContext: (flags: KubeFlags) => CommandContext,
): Promise<readonly Candidate[]> {
  const { source } = found;
  if (source === undefined || source === 'files') return [];
  const flags = flagsOf(found.values);
  try {
    if (source === 'contexts' || source === 'clusters' || source === 'users') {
      const { kubeconfigCandidates } = await import('./kubeconfig-candidates.ts');
      return kubeconfigCandidates(source, flags.kubeconfig);
    }
    const { clusterCandidates } = await import('./cluster-candidates.ts');
    return await clusterCandidates(source, found, await openContext(flags).connect());
  } catch {
    return [];
  }
}

function lineOf({ word, description }: Candidate): string {
  const shown = description?.replaceAll(SPECIAL, ' ');
  return shown === undefined ? `${word}\n` : `${word}\t${shown}\n`;
}

/** Options of one value each, as the command line has them so far. */
function flagsOf(values: Completable['values']): KubeFlags {
  const flags: Record<string, unknown> = { requestTimeout: REQUEST_TIMEOUT };
  for (const [long, given] of values) {
    const name = long.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
    flags[name] = long === 'as-group' || long === 'as-user-extra' ? given : given.at(-1);
  }
  return flags;
}
