import { conditions, type Condition } from './condition.ts';
import { executablePath, rulesByContainer, type RulesByContainer } from './container-rules.ts';
import { EXEC_ORIGINS, type ExecOrigin } from './exec-origin.ts';
import type { ExecutablePath } from './executable-path.ts';
import type { Parsed } from './field-error.ts';
import { API_VERSION, WORKLOAD_POLICY_PROPOSAL_KIND } from './keys.ts';
import { dnsLabel } from './kubernetes-name.ts';
import { MAX_LEARNED_PATHS, MAX_OBSERVED_NAMES } from './limits.ts';
import { mergePositions, type MergePosition } from './merge-position.ts';
import { objectMeta, type ObjectMeta } from './object-meta.ts';
import { list, mapped, object, oneOf, parseWith, text, wholeNumber, type Check } from './schema.ts';
import { timestamp } from './timestamp.ts';

/** What learning saw a workload start, ready to become its policy. Absent fields have their defaults. */
export interface WorkloadPolicyProposal {
  readonly metadata: ObjectMeta;
  readonly spec: { readonly rulesByContainer: RulesByContainer };
  readonly status?: WorkloadPolicyProposalStatus;
}

export interface WorkloadPolicyProposalStatus {
  /** The evidence for each learned path; one per container and path. */
  readonly observations: readonly Observation[];
  readonly conditions: readonly Condition[];
  /** What of each agent's observations is in the counts. */
  readonly mergedFrom: readonly MergePosition[];
}

export interface Observation {
  readonly containerName: string;
  readonly executablePath: ExecutablePath;
  readonly count: number;
  readonly firstSeen: string;
  readonly lastSeen: string;
  readonly origins: readonly ExecOrigin[];
  /** The pods, and nodes, that were seen first: at most 10 names. */
  readonly pods: readonly string[];
  readonly nodes: readonly string[];
}

const names = list(text({ max: 253 }), { max: MAX_OBSERVED_NAMES, key: (name) => name });

/** Checks one observation, wherever it comes from. */
export const observation: Check<Observation> = mapped(
  object(
    {
      containerName: dnsLabel,
      executablePath,
      count: wholeNumber({ min: 1 }),
      firstSeen: timestamp,
      lastSeen: timestamp,
    },
    {
      origins: list(oneOf(EXEC_ORIGINS), { max: EXEC_ORIGINS.length, key: (origin) => origin }),
      pods: names,
      nodes: names,
    },
  ),
  (given) => ({
    ...given,
    origins: given.origins ?? [],
    pods: given.pods ?? [],
    nodes: given.nodes ?? [],
  }),
);

const status: Check<WorkloadPolicyProposalStatus> = mapped(
  object(
    {},
    {
      observations: list(observation, {
        max: MAX_LEARNED_PATHS,
        key: ({ containerName, executablePath: path }) => `${containerName} ${path}`,
      }),
      conditions,
      mergedFrom: mergePositions,
    },
  ),
  (given) => ({
    observations: given.observations ?? [],
    conditions: given.conditions ?? [],
    mergedFrom: given.mergedFrom ?? [],
  }),
);

const workloadPolicyProposal: Check<WorkloadPolicyProposal> = mapped(
  object(
    {
      apiVersion: oneOf([API_VERSION]),
      kind: oneOf([WORKLOAD_POLICY_PROPOSAL_KIND]),
      metadata: objectMeta(),
      spec: mapped(object({}, { rulesByContainer }), (given) => ({
        rulesByContainer: given.rulesByContainer ?? (new Map() as RulesByContainer),
      })),
    },
    { status },
  ),
  ({ metadata, spec, status }) => ({ metadata, spec, ...(status && { status }) }),
);

/** Reads a WorkloadPolicyProposal from what JSON or YAML yields. Every unknown field is an error. */
export function parseWorkloadPolicyProposal(input: unknown): Parsed<WorkloadPolicyProposal> {
  return parseWith(workloadPolicyProposal, input);
}
