import { setCondition } from './condition.ts';
import { DEFAULT_OTHER_MOUNT_NAMESPACES, type ContainerRules } from './container-rules.ts';
import type { ExecOrigin } from './exec-origin.ts';
import { executablePathFromBytes, type ExecutableKind, type ExecutablePath } from './executable-path.ts';
import { isDnsLabel, isDnsSubdomain } from './kubernetes-name.ts';
import { MAX_LEARNED_PATHS, MAX_OBSERVED_NAMES } from './limits.ts';
import type { OwnerReference } from './object-meta.ts';
import { earlier, later } from './timestamp.ts';
import type { Observation, WorkloadPolicyProposal } from './workload-policy-proposal.ts';

/** Execs of one executable in one container that learning saw. */
export interface LearnedExec {
  readonly containerName: string;
  readonly path: Uint8Array;
  readonly kind: ExecutableKind;
  readonly origin: ExecOrigin;
  readonly count: number;
  /** RFC 3339. */
  readonly firstSeen: string;
  readonly lastSeen: string;
  readonly podName: string;
  readonly nodeName: string;
}

/** `full`: 100 paths are there already. `unlistable`: no list may hold such a path or such a container. */
export type LearningRefusal = 'full' | 'unlistable';

export interface LearningResult {
  readonly proposal: WorkloadPolicyProposal;
  /** The paths that are new in the proposal. */
  readonly added: readonly { readonly containerName: string; readonly executablePath: ExecutablePath }[];
  readonly refused: readonly { readonly exec: LearnedExec; readonly reason: LearningRefusal }[];
}

/** Condition of a proposal that had no room for a further path. */
export const FULL_CONDITION = 'Full';

/** A proposal without paths. The owner is written in part: admission completes it. */
export function emptyProposal(
  name: string,
  namespace: string,
  owner?: Pick<OwnerReference, 'kind' | 'name'>,
): WorkloadPolicyProposal {
  return {
    metadata: {
      name,
      namespace,
      labels: new Map(),
      annotations: new Map(),
      ownerReferences: owner === undefined ? [] : [owner],
    },
    spec: { rulesByContainer: new Map() },
  };
}

/**
 * A proposal after some more execs: a new path goes into its rules, in order of arrival, while there is room; every
 * exec of a path in the rules is counted in its observations, of which there are at most 100. Nothing is ever
 * removed.
 */
export function learn(proposal: WorkloadPolicyProposal, execs: Iterable<LearnedExec>): LearningResult {
  const rules = new Map(proposal.spec.rulesByContainer);
  const observations = new Map(
    (proposal.status?.observations ?? []).map((each) => [observationKey(each), each]),
  );
  let conditions = proposal.status?.conditions ?? [];
  let pathCount = 0;
  for (const { executables } of rules.values()) pathCount += executables.allowed.length;
  const added: LearningResult['added'][number][] = [];
  const refused: LearningResult['refused'][number][] = [];

  for (const exec of execs) {
    const { containerName } = exec;
    const path = listablePath(exec);
    if (path === undefined || !isDnsLabel(containerName)) {
      refused.push({ exec, reason: 'unlistable' });
      continue;
    }
    if (!(rules.get(containerName)?.executables.allowed.includes(path) ?? false)) {
      if (pathCount >= MAX_LEARNED_PATHS) {
        refused.push({ exec, reason: 'full' });
        conditions = setCondition(
          conditions,
          {
            type: FULL_CONDITION,
            status: 'True',
            reason: 'PathLimitReached',
            message: `The proposal has ${MAX_LEARNED_PATHS} paths; further ones were not added. Add what is missing by hand.`,
          },
          exec.lastSeen,
        );
        continue;
      }
      rules.set(containerName, withPath(rules.get(containerName), path));
      added.push({ containerName, executablePath: path });
      pathCount++;
    }
    const observation = observationOf(exec, path);
    const key = observationKey(observation);
    const known = observations.get(key);
    if (known !== undefined) observations.set(key, mergeObservation(known, observation));
    else if (observations.size < MAX_LEARNED_PATHS) observations.set(key, observation);
  }

  return {
    proposal: {
      ...proposal,
      spec: { ...proposal.spec, rulesByContainer: rules },
      status: { observations: [...observations.values()], conditions },
    },
    added,
    refused,
  };
}

/** Two observations of one path in one container as one. Names beyond the first ten are not kept. */
export function mergeObservation(known: Observation, repeat: Observation): Observation {
  return {
    ...known,
    count: Math.min(known.count + repeat.count, Number.MAX_SAFE_INTEGER),
    firstSeen: earlier(known.firstSeen, repeat.firstSeen),
    lastSeen: later(known.lastSeen, repeat.lastSeen),
    origins: [...new Set([...known.origins, ...repeat.origins])],
    pods: firstNames(known.pods, repeat.pods),
    nodes: firstNames(known.nodes, repeat.nodes),
  };
}

function firstNames(known: readonly string[], more: readonly string[]): readonly string[] {
  return [...new Set([...known, ...more])].slice(0, MAX_OBSERVED_NAMES);
}

function observationKey({ containerName, executablePath }: Observation): string {
  return `${containerName} ${executablePath}`;
}

function observationOf(exec: LearnedExec, executablePath: ExecutablePath): Observation {
  const { containerName, count, firstSeen, lastSeen, origin, podName, nodeName } = exec;
  return {
    containerName,
    executablePath,
    count,
    firstSeen,
    lastSeen,
    origins: [origin],
    pods: [podName].filter((name) => isDnsSubdomain(name)),
    nodes: [nodeName].filter((name) => isDnsSubdomain(name)),
  };
}

function listablePath({ path, kind }: LearnedExec): ExecutablePath | undefined {
  if (kind !== 'file') return undefined;
  const parsed = executablePathFromBytes(path);
  return parsed.ok ? parsed.value : undefined;
}

function withPath(rules: ContainerRules | undefined, path: ExecutablePath): ContainerRules {
  const { allowed = [], otherMountNamespaces = DEFAULT_OTHER_MOUNT_NAMESPACES } = rules?.executables ?? {};
  return { executables: { allowed: [...allowed, path], otherMountNamespaces } };
}
