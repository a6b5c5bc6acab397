import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { PROMOTION_FAILED_CONDITION } from '@runtime-enforcer/api/promotion';
import { objectKey } from '@runtime-enforcer/kube/kube-object';
import { COMPONENT_LABEL, isReady, nodeOf } from '../cluster/components.ts';
import { templatePolicy } from '../cluster/workloads.ts';
import { labelsOf, listAt, textAt } from '../output/json-field.ts';
import type { PodProtection } from '../pod-protection.ts';
import type { ClusterFacts } from './facts.ts';
import type { Finding } from './finding.ts';

const SHOWN_NODES = 3;

/** Pods that name a policy and are not enforced. */
export function checkPods(facts: ClusterFacts): readonly Finding[] {
  const { pods, unreadablePolicies } = facts;
  // What can be said of a policy that cannot be read is said of the policy.
  const wrong = (pods.ok ? pods.value : []).flatMap((pod) =>
    pod.enforcement.state === 'notEnforced' && !unreadablePolicies.has(`${pod.namespace}/${pod.policyName}`)
      ? [{ ...pod, why: pod.enforcement.why }]
      : [],
  );
  const alike = Map.groupBy(wrong, ({ namespace, workloadKind, workloadName, policyName, why }) =>
    JSON.stringify([namespace, workloadKind, workloadName, policyName, why]),
  );
  return [...alike.values()].flatMap((group): readonly Finding[] => {
    const [pod] = group;
    if (pod === undefined) return [];
    const { namespace, podName, policyName, workloadKind, workloadName, why } = pod;
    const isOne = group.length === 1;
    const subject = isOne
      ? `Pod ${namespace}/${podName}`
      : `${group.length} pods of ${workloadKind} ${namespace}/${workloadName}`;
    const what = isOne ? 'it names' : 'they name';
    const message = `${what} policy "${policyName}" and ${isOne ? 'is' : 'are'} not enforced: ${why}`;
    return [{ check: 'unbound-pods', severity: 'error', subject, message, repair: repairOf(pod, facts) }];
  });
}

function repairOf(pod: PodProtection, facts: ClusterFacts): string {
  const { namespace, policyName, policy, nodeName } = pod;
  if (policy === undefined) return repairWithoutPolicy(pod, facts);
  const { agents } = facts;
  return agents.ok && !agents.value.some((agent) => nodeOf(agent) === nodeName && isReady(agent))
    ? `kubectl get pods -A -l ${COMPONENT_LABEL}=agent -o wide`
    : `kubectl runtime-enforcer policy show ${policyName} -n ${namespace}`;
}

/** The policy comes from the proposal of its name, or the pod is made to name none. */
function repairWithoutPolicy(pod: PodProtection, { proposals, workloads }: ClusterFacts): string {
  const { namespace, podName, policyName, workloadKind, workloadName } = pod;
  const isProposed = (proposals.ok ? proposals.value : []).some(
    ({ metadata }) => metadata.namespace === namespace && metadata.name === policyName,
  );
  if (isProposed) return `kubectl runtime-enforcer promote ${policyName} -n ${namespace}`;
  const maker = (workloads.ok ? workloads.value : []).find(
    ({ resource, object }) =>
      resource.kind === workloadKind &&
      object.metadata.name === workloadName &&
      object.metadata.namespace === namespace,
  );
  return maker !== undefined && templatePolicy(maker.object, maker.resource) !== undefined
    ? `kubectl runtime-enforcer unbind ${maker.resource.singular}/${workloadName} -n ${namespace}`
    : `kubectl delete pod ${podName} -n ${namespace}`;
}

/** Policies that the server has taken and nobody here can read: written for another version. */
export function checkReadable({ unreadablePolicies }: ClusterFacts): readonly Finding[] {
  return [...unreadablePolicies].map(([key, message]) => {
    const [namespace = '', name = ''] = key.split('/');
    const repair = `kubectl edit workloadpolicy ${name} -n ${namespace}`;
    return { check: 'policies', severity: 'error', subject: `WorkloadPolicy ${key}`, message, repair };
  });
}

/** Labels that stand on a workload and not on its pods, where they do nothing. */
export function checkWorkloadLabels({ workloads }: ClusterFacts): readonly Finding[] {
  return (workloads.ok ? workloads.value : []).flatMap(({ resource, object }): readonly Finding[] => {
    const label = labelsOf(object).get(POLICY_LABEL);
    if (label === undefined || templatePolicy(object, resource) !== undefined) return [];
    const { namespace = '', name } = object.metadata;
    return [
      {
        check: 'misplaced-labels',
        severity: 'error',
        subject: `${resource.kind} ${namespace}/${name}`,
        message: `the label ${POLICY_LABEL} stands on the workload and not on its pods, where it would bind them`,
        repair: `kubectl runtime-enforcer bind ${resource.singular}/${name} ${label} -n ${namespace}`,
      },
    ];
  });
}

/** Policies that are not in force everywhere, and those that nobody names. */
export function checkPolicies({ policies, pods }: ClusterFacts): readonly Finding[] {
  const used = pods.ok ? new Set(pods.value.map((pod) => `${pod.namespace}/${pod.policyName}`)) : undefined;
  return (policies.ok ? policies.value : []).flatMap(({ metadata, spec, status }): readonly Finding[] => {
    const { namespace, name } = metadata;
    const subject = `WorkloadPolicy ${namespace}/${name}`;
    const show = `kubectl runtime-enforcer policy show ${name} -n ${namespace}`;
    const issues = [...(status?.nodesWithIssues ?? [])].slice(0, SHOWN_NODES);
    const where = issues
      .map(([node, { code, message = '' }]) => `${node}: ${code} ${message}`.trim())
      .join('; ');
    const failed: readonly Finding[] =
      status?.phase === 'Failed'
        ? [
            {
              check: 'policies',
              severity: 'error',
              subject,
              message: `it is not in force on all nodes (${where})`,
              repair: show,
            },
          ]
        : [];
    const unused: readonly Finding[] =
      used?.has(`${namespace}/${name}`) === false && !spec.binding.autoBind
        ? [
            {
              check: 'unused-policies',
              severity: 'note',
              subject,
              message: 'no pod names it',
              repair: `kubectl delete workloadpolicy ${name} -n ${namespace}`,
            },
          ]
        : [];
    return [...failed, ...unused];
  });
}

/** Proposals that the controller cannot promote. */
export function checkProposals({ proposals }: ClusterFacts): readonly Finding[] {
  return (proposals.ok ? proposals.value : []).flatMap((proposal): readonly Finding[] => {
    const failed = listAt(proposal, 'status', 'conditions').find(
      (each) => textAt(each, 'type') === PROMOTION_FAILED_CONDITION && textAt(each, 'status') === 'True',
    );
    if (failed === undefined) return [];
    const { namespace = '', name } = proposal.metadata;
    return [
      {
        check: 'promotions',
        severity: 'error',
        subject: `WorkloadPolicyProposal ${objectKey(proposal)}`,
        message: `it cannot be promoted: ${textAt(failed, 'message')}`,
        repair: `kubectl describe workloadpolicyproposal ${name} -n ${namespace}`,
      },
    ];
  });
}
