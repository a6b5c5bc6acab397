import { dangerOf, type Danger } from './dangerous-executables.ts';
import type { ExecutablePath } from './executable-path.ts';
import { FULL_CONDITION } from './learned-paths.ts';
import type { Observation, WorkloadPolicyProposal } from './workload-policy-proposal.ts';

/**
 * What a person should look at before a path is allowed. `dangerous`: it can start or make anything. `interactive`:
 * only ever started from outside, as by `kubectl exec`. `writable`: it lies where anybody may write. `once`: seen a
 * single time. `oneNode`: other paths of the container were seen on more nodes. `noEvidence`: nobody reported it.
 */
export type Concern = 'dangerous' | 'interactive' | 'writable' | 'once' | 'oneNode' | 'noEvidence';

/** Concerns that make a path a finding; the others are only told. */
export const WARNINGS: ReadonlySet<Concern> = new Set(['dangerous', 'interactive', 'writable']);

export interface ReviewedPath {
  readonly containerName: string;
  readonly executablePath: ExecutablePath;
  readonly observation?: Observation;
  readonly danger?: Danger;
  readonly concerns: readonly Concern[];
}

export interface ProposalReview {
  /** In the order of the rules. */
  readonly paths: readonly ReviewedPath[];
  /** How many paths have a concern that is a warning. */
  readonly warnings: number;
  /** Learning had no room for all that it saw. */
  readonly full: boolean;
}

/** Directories in which images usually let every user write. */
const WRITABLE = ['/tmp/', '/var/tmp/', '/dev/shm/', '/run/user/'];

/** Looks through the evidence behind each path of a proposal. */
export function reviewProposal({ spec, status }: WorkloadPolicyProposal): ProposalReview {
  const observations = new Map<string, Observation>();
  const mostNodes = new Map<string, number>();
  for (const observation of status?.observations ?? []) {
    const { containerName, executablePath, nodes } = observation;
    observations.set(`${containerName} ${executablePath}`, observation);
    mostNodes.set(containerName, Math.max(mostNodes.get(containerName) ?? 0, nodes.length));
  }
  const paths = [...spec.rulesByContainer].flatMap(([containerName, { executables }]) =>
    executables.allowed.map((executablePath): ReviewedPath => {
      const observation = observations.get(`${containerName} ${executablePath}`);
      const danger = dangerOf(executablePath);
      const elsewhere = (mostNodes.get(containerName) ?? 0) > 1;
      const concerns: Concern[] = [
        ...(danger === undefined ? [] : (['dangerous'] as const)),
        ...(WRITABLE.some((directory) => executablePath.startsWith(directory))
          ? (['writable'] as const)
          : []),
        ...evidenceConcerns(observation, elsewhere),
      ];
      return {
        containerName,
        executablePath,
        concerns,
        ...(observation && { observation }),
        ...(danger && { danger }),
      };
    }),
  );
  return {
    paths,
    warnings: paths.filter(({ concerns }) => concerns.some((concern) => WARNINGS.has(concern))).length,
    full:
      status?.conditions.some(({ type, status: is }) => type === FULL_CONDITION && is === 'True') ?? false,
  };
}

function evidenceConcerns(observation: Observation | undefined, elsewhere: boolean): Concern[] {
  if (observation === undefined) return ['noEvidence'];
  const { origins, count, nodes } = observation;
  return [
    ...(origins.length > 0 && origins.every((origin) => origin === 'exec') ? (['interactive'] as const) : []),
    ...(count === 1 ? (['once'] as const) : []),
    ...(nodes.length === 1 && elsewhere ? (['oneNode'] as const) : []),
  ];
}
