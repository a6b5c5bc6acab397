import { setCondition } from './condition.ts';
import {
  DEFAULT_OTHER_MOUNT_NAMESPACES,
  type ContainerRules,
  type RulesByContainer,
} from './container-rules.ts';
import type { ExecOrigin } from './exec-origin.ts';
import { executablePathFromBytes, type ExecutableKind, type ExecutablePath } from './executable-path.ts';
import { isDnsLabel, isDnsSubdomain } from './kubernetes-name.ts';
import { MAX_CONTAINERS, MAX_LEARNED_BYTES, MAX_LEARNED_PATHS, MAX_OBSERVED_NAMES } from './limits.ts';
import type { OwnerReference } from './object-meta.ts';
import { earlier, later } from './timestamp.ts';
import type { Observation, WorkloadPolicyProposal } from './workload-policy-proposal.ts';

const encoder = new TextEncoder();

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

/** `full`: the proposal has no room for it. `unlistable`: no list may hold such a path or such a container. */
export type LearningRefusal = 'full' | 'unlistable';

/** A path that learning found in a container. */
export interface LearnedPath {
  readonly containerName: string;
  readonly executablePath: ExecutablePath;
}

export interface LearningResult {
  readonly proposal: WorkloadPolicyProposal;
  /** The paths that are new in the proposal. */
  readonly added: readonly LearnedPath[];
  readonly refused: readonly { readonly exec: LearnedExec; readonly reason: LearningRefusal }[];
}

/** Condition of a proposal that had no room for a further path. */
export const FULL_CONDITION = 'Full';

/** That condition, in all but its time. */
export const FULL = {
  type: FULL_CONDITION,
  status: 'True',
  reason: 'PathLimitReached',
  message:
    `The proposal has no room for a further path: it takes ${MAX_LEARNED_PATHS} paths of together ` +
    `${MAX_LEARNED_BYTES / 1024} KiB, in ${MAX_CONTAINERS} containers. Add what is missing by hand.`,
} as const;

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
  const rules = openRules(proposal.spec.rulesByContainer);
  const observations = new Map(
    (proposal.status?.observations ?? []).map((each) => [observationKey(each), each]),
  );
  let conditions = proposal.status?.conditions ?? [];
  const added: LearnedPath[] = [];
  const refused: LearningResult['refused'][number][] = [];

  for (const exec of execs) {
    const { containerName } = exec;
    const path = listablePath(exec);
    if (path === undefined || !isDnsLabel(containerName)) {
      refused.push({ exec, reason: 'unlistable' });
      continue;
    }
    const outcome = rules.add(containerName, path);
    if (outcome === 'full') {
      refused.push({ exec, reason: 'full' });
      conditions = setCondition(conditions, FULL, exec.lastSeen);
      continue;
    }
    if (outcome === 'added') added.push({ containerName, executablePath: path });
    const observation = observationOf(exec, path);
    const key = observationKey(observation);
    const known = observations.get(key);
    if (known !== undefined) observations.set(key, mergeObservation(known, observation));
    else if (observations.size < MAX_LEARNED_PATHS) observations.set(key, observation);
  }

  return {
    proposal: {
      ...proposal,
      spec: { ...proposal.spec, rulesByContainer: rules.rules },
      status: {
        observations: [...observations.values()],
        conditions,
        mergedFrom: proposal.status?.mergedFrom ?? [],
      },
    },
    added,
    refused,
  };
}

/**
 * Rules after some more paths: those that are new are added behind the others, while there is room. Nothing is ever
 * removed, also where a user wrote more than learning would.
 */
export function addPaths(
  before: RulesByContainer,
  paths: Iterable<LearnedPath>,
): {
  readonly rules: RulesByContainer;
  readonly added: readonly LearnedPath[];
  /** Those for which there is no room. */
  readonly refused: readonly LearnedPath[];
} {
  const open = openRules(before);
  const added: LearnedPath[] = [];
  const refused: LearnedPath[] = [];
  for (const path of paths) {
    const outcome = open.add(path.containerName, path.executablePath);
    if (outcome === 'added') added.push(path);
    if (outcome === 'full') refused.push(path);
  }
  return { rules: open.rules, added, refused };
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

/** A copy of rules that paths can be added to. */
function openRules(before: RulesByContainer): {
  readonly rules: RulesByContainer;
  add(containerName: string, path: ExecutablePath): 'added' | 'listed' | 'full';
} {
  const rules = new Map(before);
  let count = 0;
  let bytes = 0;
  for (const { executables } of rules.values()) {
    count += executables.allowed.length;
    for (const path of executables.allowed) bytes += byteLength(path);
  }
  return {
    rules,
    add(containerName, path) {
      const known = rules.get(containerName);
      if (known?.executables.allowed.includes(path) === true) return 'listed';
      const after = bytes + byteLength(path);
      if (count >= MAX_LEARNED_PATHS || after > MAX_LEARNED_BYTES) return 'full';
      if (known === undefined && rules.size >= MAX_CONTAINERS) return 'full';
      rules.set(containerName, withPath(known, path));
      count++;
      bytes = after;
      return 'added';
    },
  };
}

function byteLength(path: ExecutablePath): number {
  return encoder.encode(path).length;
}

function firstNames(known: readonly string[], more: readonly string[]): readonly string[] {
  return [...new Set([...known, ...more])].slice(0, MAX_OBSERVED_NAMES);
}

/** Equal for observations of one executable in one container. */
export function observationKey({ containerName, executablePath }: Observation): string {
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
