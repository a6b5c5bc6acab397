import { readPolicyBinding } from '@runtime-enforcer/api/binding';
import { issueOnNode } from '@runtime-enforcer/api/explain';
import { workloadFromPod } from '@runtime-enforcer/api/workload';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { labelsOf, textAt } from './output/json-field.ts';

/** A pod that names a policy, and what is known of how it is enforced. */
export interface PodProtection {
  readonly namespace: string;
  readonly podName: string;
  readonly nodeName: string;
  readonly workloadKind: string;
  readonly workloadName: string;
  readonly policyName: string;
  readonly policy: WorkloadPolicy | undefined;
  readonly enforcement: Enforcement;
}

/**
 * `enforced`: an agent is ready on the node and no node reports trouble with the policy. `notEnforced`: something is
 * known to be missing. `finished`: nothing runs any more. `pending`: the pod has no node yet.
 */
export type Enforcement =
  | { readonly state: 'enforced' | 'finished' | 'pending' }
  | { readonly state: 'notEnforced'; readonly why: string };

export interface ProtectionFacts {
  readonly pods: readonly KubeObject[];
  /** By `namespace/name`. */
  readonly policies: ReadonlyMap<string, WorkloadPolicy>;
  /** Nodes with a ready agent; undefined where the agents could not be listed. */
  readonly agentNodes: ReadonlySet<string> | undefined;
}

/** Every pod whose label is not empty, in the order in which they came. */
export function podProtections({ pods, policies, agentNodes }: ProtectionFacts): readonly PodProtection[] {
  return pods.flatMap((pod): readonly PodProtection[] => {
    const labels = labelsOf(pod);
    const binding = readPolicyBinding(labels);
    if (binding.kind === 'unlabelled' || binding.kind === 'empty') return [];
    const { name: podName, namespace = '' } = pod.metadata;
    const policyName = binding.kind === 'policy' ? binding.policyName : '';
    const policy = policies.get(`${namespace}/${policyName}`);
    const { kind, name } = workloadFromPod(podName, labels);
    const nodeName = textAt(pod, 'spec', 'nodeName');
    const base = { namespace, podName, nodeName, workloadKind: kind, workloadName: name, policyName, policy };
    if (binding.kind === 'invalid') {
      return [{ ...base, enforcement: { state: 'notEnforced', why: binding.message } }];
    }
    return [{ ...base, enforcement: enforcementOf(pod, nodeName, policy, agentNodes) }];
  });
}

function enforcementOf(
  pod: KubeObject,
  nodeName: string,
  policy: WorkloadPolicy | undefined,
  agentNodes: ReadonlySet<string> | undefined,
): Enforcement {
  const phase = textAt(pod, 'status', 'phase');
  if (phase === 'Succeeded' || phase === 'Failed') return { state: 'finished' };
  if (policy === undefined) return { state: 'notEnforced', why: 'the policy does not exist' };
  if (nodeName === '') return { state: 'pending' };
  if (agentNodes?.has(nodeName) === false) {
    return { state: 'notEnforced', why: 'no agent is ready on the node' };
  }
  const issue = issueOnNode(policy, nodeName);
  if (issue !== undefined) {
    const message = issue.message === undefined ? '' : ` ${issue.message}`;
    return { state: 'notEnforced', why: `the node reports ${issue.code}${message}` };
  }
  if (policy.status?.phase === undefined) {
    return { state: 'notEnforced', why: 'no node has reported the policy yet' };
  }
  return { state: 'enforced' };
}
