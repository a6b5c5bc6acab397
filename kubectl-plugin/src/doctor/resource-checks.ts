import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { PROMOTION_FAILED_CONDITION } from '@runtime-enforcer/api/promotion';
import { objectKey } from '@runtime-enforcer/kube/kube-object';
import { templatePolicy } from '../cluster/workloads.ts';
import { labelsOf, listAt, textAt } from '../output/json-field.ts';
import type { ClusterFacts } from './facts.ts';
import type { Finding } from './finding.ts';

const SHOWN_NODES = 3;

/** Pods that name a policy and are not enforced. */
export function checkPods({ pods }: ClusterFacts): readonly Finding[] {
  return (pods.ok ? pods.value : []).flatMap(
    ({ namespace, podName, policyName, policy, enforcement }): readonly Finding[] => {
      if (enforcement.state !== 'notEnforced') return [];
      const base = {
        check: 'unbound-pods',
        severity: 'error',
        subject: `Pod ${namespace}/${podName}`,
        message: `it names policy "${policyName}" and is not enforced: ${enforcement.why}`,
      } as const;
      const repair =
        policy === undefined
          ? `kubectl runtime-enforcer proposal list -n ${namespace}`
          : `kubectl runtime-enforcer policy show ${policyName} -n ${namespace}`;
      return [{ ...base, repair }];
    },
  );
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
