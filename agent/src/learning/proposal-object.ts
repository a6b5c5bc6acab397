import { formatFieldError } from '@runtime-enforcer/api/field-error';
import { API_VERSION, PROMOTE_LABEL, WORKLOAD_POLICY_PROPOSAL_KIND } from '@runtime-enforcer/api/keys';
import { addPaths, type LearnedPath } from '@runtime-enforcer/api/learned-paths';
import type { OwnerReference } from '@runtime-enforcer/api/object-meta';
import { parseWorkloadPolicyProposal } from '@runtime-enforcer/api/workload-policy-proposal';
import type { RulesByContainer } from '@runtime-enforcer/api/container-rules';
import { isJsonObject, type KubeObject, objectKey } from '@runtime-enforcer/kube/kube-object';
import type { OwnedWorkload } from './owner-chain.ts';
import { isMarkedForPromotion } from './promotion-watch.ts';

/** Shown of what is wrong with a proposal. */
const MAX_ERRORS = 3;

/** A proposal that learning must not write to; the message names it and says what to do. */
export class UnusableProposalError extends Error {
  override readonly name = 'UnusableProposalError';
}

/** A proposal that is not the workload's: its owner is an earlier one of the same name, or it is being deleted. */
export class EndingProposalError extends Error {
  override readonly name = 'EndingProposalError';
}

/** A proposal as it would be with some more paths. */
export interface ProposalUpdate {
  /** Undefined: nothing has to be written. */
  readonly object: KubeObject | undefined;
  readonly added: readonly LearnedPath[];
  /** There is no room for these. */
  readonly refused: readonly LearnedPath[];
  /** Every path that is listed then, as {@link pathKey} has it. */
  readonly listed: ReadonlySet<string>;
}

/** One text for a container and a path in it. */
export function pathKey({ containerName, executablePath }: LearnedPath): string {
  return `${containerName} ${executablePath}`;
}

/** A proposal that does not exist yet. */
export function newProposal(
  name: string,
  workload: OwnedWorkload,
  paths: readonly LearnedPath[],
): ProposalUpdate {
  const { rules, added, refused } = addPaths(new Map(), paths);
  const object: KubeObject = {
    apiVersion: API_VERSION,
    kind: WORKLOAD_POLICY_PROPOSAL_KIND,
    metadata: { name, namespace: workload.namespace, ownerReferences: [ownerReference(workload)] },
    spec: { rulesByContainer: withRules({}, rules) },
  };
  return { object, added, refused, listed: listedIn(rules) };
}

/**
 * The proposal with what is missing of `paths`. Everything else of it stays as it came.
 * @returns `marked` if its label asks for promotion: then it gets nothing more
 * @throws UnusableProposalError, EndingProposalError
 */
export function updatedProposal(
  current: KubeObject,
  workload: OwnedWorkload,
  paths: readonly LearnedPath[],
): ProposalUpdate | 'marked' {
  const name = objectKey(current);
  const { labels, ownerReferences, deletionTimestamp, namespace } = current.metadata;
  if (deletionTimestamp !== undefined) throw new EndingProposalError(`proposal ${name} is being deleted`);
  const spec = isJsonObject(current['spec']) ? current['spec'] : {};
  const parsed = parseWorkloadPolicyProposal({
    apiVersion: current.apiVersion,
    kind: current.kind,
    metadata: {
      name: current.metadata.name,
      namespace,
      ...(labels !== undefined && { labels }),
      ...(ownerReferences !== undefined && { ownerReferences }),
    },
    spec: current['spec'],
  });
  if (!parsed.ok) {
    const errors = parsed.errors.slice(0, MAX_ERRORS).map(formatFieldError).join('; ');
    throw new UnusableProposalError(`proposal ${name} is not valid: ${errors}; correct or delete it`);
  }
  const { metadata, spec: known } = parsed.value;
  if (isMarkedForPromotion(metadata.labels.get(PROMOTE_LABEL))) return 'marked';
  const owners = ownersOf(name, metadata.ownerReferences, workload);
  const { rules, added, refused } = addPaths(known.rulesByContainer, paths);
  const isSame = added.length === 0 && owners === metadata.ownerReferences;
  const object: KubeObject = {
    ...current,
    metadata: { ...current.metadata, ownerReferences: owners },
    spec: { ...spec, rulesByContainer: withRules(spec['rulesByContainer'], rules) },
  };
  return { object: isSame ? undefined : object, added, refused, listed: listedIn(rules) };
}

function ownersOf(
  name: string,
  owners: readonly OwnerReference[],
  workload: OwnedWorkload,
): readonly OwnerReference[] {
  if (owners.some(({ uid }) => uid === workload.uid)) return owners;
  const own = ownerReference(workload);
  const [other] = owners;
  if (other === undefined) return [own];
  if (other.kind !== workload.kind || other.name !== workload.name) {
    throw new UnusableProposalError(
      `proposal ${name} belongs to ${other.kind} ${other.name}, not to ${workload.kind} ${workload.name}; ` +
        'delete it or correct its owner reference',
    );
  }
  if (other.uid === undefined || other.uid === '') return [own, ...owners.slice(1)];
  throw new EndingProposalError(
    `proposal ${name} belongs to an earlier ${workload.kind} ${workload.name} (uid ${other.uid}); ` +
      'Kubernetes removes it with its owner',
  );
}

/** Without `blockOwnerDeletion`, which some clusters let only those set who may change the owner. */
function ownerReference({ apiVersion, kind, name, uid }: OwnedWorkload): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true };
}

/** Rules as JSON, above what was there before. */
function withRules(before: unknown, rules: RulesByContainer): Record<string, unknown> {
  const own = (json: unknown, field: string): Record<string, unknown> => {
    const value = isJsonObject(json) && Object.hasOwn(json, field) ? json[field] : undefined;
    return isJsonObject(value) ? value : {};
  };
  const after = [...rules].map(([container, { executables }]) => {
    const known = own(before, container);
    return [
      container,
      { ...known, executables: { ...own(known, 'executables'), allowed: executables.allowed } },
    ];
  });
  return Object.fromEntries(after) as Record<string, unknown>;
}

function listedIn(rules: RulesByContainer): ReadonlySet<string> {
  const listed = new Set<string>();
  for (const [containerName, { executables }] of rules) {
    for (const executablePath of executables.allowed) listed.add(pathKey({ containerName, executablePath }));
  }
  return listed;
}
