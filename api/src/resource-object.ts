import { DEFAULT_OTHER_MOUNT_NAMESPACES, type RulesByContainer } from './container-rules.ts';
import { API_VERSION, WORKLOAD_POLICY_KIND, WORKLOAD_POLICY_PROPOSAL_KIND } from './keys.ts';
import type { ObjectMeta } from './object-meta.ts';
import { DEFAULT_UNLISTED_CONTAINERS, type WorkloadPolicy } from './workload-policy.ts';
import type { WorkloadPolicyStatus } from './workload-policy-status.ts';
import type { WorkloadPolicyProposal } from './workload-policy-proposal.ts';

/** A plain object for JSON or YAML, its fields in the order in which people read them. */
export type PlainObject = Readonly<Record<string, unknown>>;

/**
 * The policy as the API server takes it; reading it again yields the same policy. Fields that have their default
 * are left out; containers and paths are sorted, so that equal policies are equal objects.
 */
export function workloadPolicyObject({ metadata, spec, status }: WorkloadPolicy): PlainObject {
  return {
    apiVersion: API_VERSION,
    kind: WORKLOAD_POLICY_KIND,
    metadata: metadataObject(metadata),
    spec: {
      mode: spec.mode,
      ...(spec.unlistedContainers !== DEFAULT_UNLISTED_CONTAINERS && {
        unlistedContainers: spec.unlistedContainers,
      }),
      ...(spec.binding.autoBind && { binding: { autoBind: true } }),
      rulesByContainer: rulesObject(spec.rulesByContainer),
    },
    ...(status && { status: workloadPolicyStatusObject(status) }),
  };
}

/** The status as the API server takes it. */
export function workloadPolicyStatusObject(status: WorkloadPolicyStatus): PlainObject {
  return { ...status, nodesWithIssues: Object.fromEntries(sortedEntries(status.nodesWithIssues)) };
}

/** The proposal as the API server takes it, in the same way. */
export function workloadPolicyProposalObject({
  metadata,
  spec,
  status,
}: WorkloadPolicyProposal): PlainObject {
  return {
    apiVersion: API_VERSION,
    kind: WORKLOAD_POLICY_PROPOSAL_KIND,
    metadata: metadataObject(metadata),
    spec: { rulesByContainer: rulesObject(spec.rulesByContainer) },
    ...(status && { status: { ...status } }),
  };
}

function rulesObject(rules: RulesByContainer): PlainObject {
  return Object.fromEntries(
    sortedEntries(rules).map(([container, { executables }]) => [
      container,
      {
        executables: {
          allowed: executables.allowed.toSorted(byCodeUnit),
          ...(executables.otherMountNamespaces !== DEFAULT_OTHER_MOUNT_NAMESPACES && {
            otherMountNamespaces: executables.otherMountNamespaces,
          }),
        },
      },
    ]),
  );
}

function metadataObject(metadata: ObjectMeta): PlainObject {
  const { name, namespace, labels, annotations, ownerReferences, ...rest } = metadata;
  return {
    name,
    namespace,
    ...(labels.size > 0 && { labels: Object.fromEntries(sortedEntries(labels)) }),
    ...(annotations.size > 0 && { annotations: Object.fromEntries(sortedEntries(annotations)) }),
    ...(ownerReferences.length > 0 && { ownerReferences }),
    ...rest,
  };
}

function sortedEntries<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].toSorted(([one], [other]) => byCodeUnit(one, other));
}

function byCodeUnit(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
