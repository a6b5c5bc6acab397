import type { ExecOrigin } from './exec-origin.ts';
import { type Concern, reviewProposal, WARNINGS } from './proposal-review.ts';
import { earlier, later } from './timestamp.ts';
import type { Observation, WorkloadPolicyProposal } from './workload-policy-proposal.ts';

/** Bound of the annotation, in UTF-8 bytes: all annotations of an object share 256 KiB. */
export const MAX_EVIDENCE_BYTES = 4_096;
/** Longer paths are counted, not written out. */
const MAX_PATH_BYTES = 256;

/** What a policy's rules rested on when its proposal was promoted. */
export interface PromotionEvidence {
  readonly proposalUid?: string;
  /** When learning began. */
  readonly since?: string;
  readonly paths: number;
  /** Paths that an agent told of; what the others rest on is not known. */
  readonly observedPaths: number;
  readonly execs: number;
  readonly firstSeen?: string;
  readonly lastSeen?: string;
  /** How many of the paths were started in each way. */
  readonly origins: Readonly<Partial<Record<ExecOrigin, number>>>;
  /** Nodes that are known by name: each observation keeps the first ten. */
  readonly nodes: number;
  /** Learning had no room for all that it saw. */
  readonly full: boolean;
  readonly concerns: Readonly<Partial<Record<Concern, number>>>;
  /** Paths with a warning, as many as there is room for. */
  readonly warnings: readonly EvidenceWarning[];
  /** Paths with a warning that are not written out. */
  readonly moreWarnings: number;
}

export interface EvidenceWarning {
  readonly container: string;
  readonly path: string;
  readonly concerns: readonly Concern[];
}

/** The summary as the text of an annotation: JSON of at most {@link MAX_EVIDENCE_BYTES}. */
export function promotionEvidence(proposal: WorkloadPolicyProposal): string {
  const { paths, full } = reviewProposal(proposal);
  const observations = paths.flatMap(({ observation }) => observation ?? []);
  const warnings = paths
    .filter(({ concerns }) => concerns.some((concern) => WARNINGS.has(concern)))
    .map(({ containerName: container, executablePath: path, concerns }) => ({ container, path, concerns }));
  const { uid, creationTimestamp } = proposal.metadata;
  const summary = {
    ...(uid !== undefined && { proposalUid: uid }),
    ...(creationTimestamp !== undefined && { since: creationTimestamp }),
    paths: paths.length,
    observedPaths: observations.length,
    execs: observations.reduce((sum, { count }) => sum + count, 0),
    ...times(observations),
    origins: tally(observations.flatMap(({ origins }) => origins)),
    nodes: new Set(observations.flatMap(({ nodes }) => nodes)).size,
    full,
    concerns: tally(paths.flatMap(({ concerns }) => concerns)),
  };
  return withWarnings(summary, warnings);
}

function withWarnings(
  summary: Omit<PromotionEvidence, 'warnings' | 'moreWarnings'>,
  warnings: readonly EvidenceWarning[],
): string {
  const shown: EvidenceWarning[] = [];
  const text = (): string =>
    JSON.stringify({
      ...summary,
      warnings: shown,
      moreWarnings: warnings.length - shown.length,
    } satisfies PromotionEvidence);
  for (const warning of warnings) {
    if (Buffer.byteLength(warning.path) > MAX_PATH_BYTES) continue;
    shown.push(warning);
    if (Buffer.byteLength(text()) <= MAX_EVIDENCE_BYTES) continue;
    shown.pop();
    break;
  }
  return text();
}

function times([first, ...others]: readonly Observation[]): { firstSeen?: string; lastSeen?: string } {
  if (first === undefined) return {};
  return {
    firstSeen: others.reduce((time, { firstSeen }) => earlier(time, firstSeen), first.firstSeen),
    lastSeen: others.reduce((time, { lastSeen }) => later(time, lastSeen), first.lastSeen),
  };
}

function tally<Word extends string>(words: readonly Word[]): Partial<Record<Word, number>> {
  const counts: Partial<Record<Word, number>> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
