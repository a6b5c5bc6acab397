import { setCondition } from './condition.ts';
import { addPaths, FULL, mergeObservation, observationKey } from './learned-paths.ts';
import { MAX_LEARNED_PATHS } from './limits.ts';
import { advancePositions, positionsByKey, sequenceKey, type MergePosition } from './merge-position.ts';
import type { Observation, WorkloadPolicyProposal } from './workload-policy-proposal.ts';

/** Where counts stop. */
const MAX_COUNT = 2 ** 52;

/** One entry of an agent's observations: what `observation` counts minus `previousCount` is new. */
export interface ObservationEntry {
  readonly sequence: number;
  readonly observation: Observation;
  readonly previousCount: number;
}

/** Entries of one sequence that concern one proposal, in order. */
export interface ObservationBatch {
  readonly nodeName: string;
  readonly incarnation: string;
  readonly entries: readonly ObservationEntry[];
}

type ProposalStatus = NonNullable<WorkloadPolicyProposal['status']>;

const NO_STATUS: ProposalStatus = { observations: [], conditions: [], mergedFrom: [] };

/**
 * The status of a proposal with what agents have told since: each entry counts once. A path that the rules have no
 * room for makes the proposal `Full`, and has an observation only while others leave room for it.
 * @param now RFC 3339
 */
export function proposalStatus(
  { spec, status: before = NO_STATUS }: Pick<WorkloadPolicyProposal, 'spec' | 'status'>,
  batches: Iterable<ObservationBatch>,
  now: string,
): ProposalStatus {
  const byKey = new Map(before.observations.map((each) => [observationKey(each), each]));
  const positions = positionsByKey(before.mergedFrom);
  const moved: MergePosition[] = [];
  const unlisted: Observation[] = [];
  for (const { nodeName, incarnation, entries } of batches) {
    const start = positions.get(sequenceKey({ nodeName, incarnation })) ?? 0;
    let sequence = start;
    for (const { observation, previousCount, ...entry } of entries) {
      if (entry.sequence <= sequence) continue;
      sequence = entry.sequence;
      if (!isListed(observation, spec)) unlisted.push(observation);
      const added = { ...observation, count: observation.count - previousCount };
      const key = observationKey(observation);
      const known = byKey.get(key);
      if (known === undefined && added.count <= 0) continue;
      const merged = known === undefined ? added : mergeObservation(known, added);
      byKey.set(key, { ...merged, count: Math.min(merged.count, MAX_COUNT) });
    }
    if (sequence > start) moved.push({ nodeName, incarnation, sequence });
  }
  const isFull = addPaths(spec.rulesByContainer, unlisted).refused.length > 0;
  return {
    ...before,
    observations: bounded([...byKey.values()], spec),
    conditions: isFull ? setCondition(before.conditions, FULL, now) : before.conditions,
    mergedFrom: advancePositions(before.mergedFrom, moved),
  };
}

function isListed(
  { containerName, executablePath }: Observation,
  { rulesByContainer }: WorkloadPolicyProposal['spec'],
): boolean {
  return rulesByContainer.get(containerName)?.executables.allowed.includes(executablePath) ?? false;
}

/** Those of listed paths first to stay: agents tell of a path before, or after, they have written it into the rules. */
function bounded(
  observations: readonly Observation[],
  spec: WorkloadPolicyProposal['spec'],
): readonly Observation[] {
  if (observations.length <= MAX_LEARNED_PATHS) return observations;
  const listed = observations.filter((each) => isListed(each, spec));
  const others = observations.filter((each) => !isListed(each, spec));
  return [...listed, ...others].slice(0, MAX_LEARNED_PATHS);
}
