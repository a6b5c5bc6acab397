import { readPolicyBinding } from '@runtime-enforcer/api/binding';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { workloadFromPod } from '@runtime-enforcer/api/workload';
import type { ReportedContainer, ReportedPod } from '@runtime-enforcer/rpc/reported';
import type { ClusterPod } from './cluster-pod.ts';
import { containerLabel, type Difference, podLabel } from './difference.ts';

/** Of a pod in another phase the two sides know at different times. */
const COMPARED_PHASES: ReadonlySet<string> = new Set(['Running', 'Succeeded', 'Failed']);
/** Labels that a runtime has of kubelet, or gives a pod itself, and the API server has not. */
const RUNTIME_LABEL_PREFIXES = ['io.kubernetes.pod.', 'io.cri-containerd.'] as const;

/** What differs, and what only deserves to be said. */
export interface Comparison {
  readonly differences: readonly Difference[];
  readonly remarks: readonly Difference[];
}

/** Compares the pods of one node as the API server has them with those that its agent knows. */
export function comparePods(cluster: readonly ClusterPod[], agent: readonly ReportedPod[]): Comparison {
  const known = new Map(agent.map((pod) => [pod.uid, pod]));
  const expected = new Map(cluster.map((pod) => [pod.id, pod]));
  const differences: Difference[] = [];
  const remarks: Difference[] = [];
  for (const pod of cluster) {
    if (!isCompared(pod)) continue;
    const cached = known.get(pod.id);
    if (cached === undefined) {
      // An agent forgets containers that have ended.
      if (pod.containers.some(({ isRunning }) => isRunning))
        differences.push({ kind: 'pod-missing', pod: podLabel(pod) });
      continue;
    }
    differences.push(...podDifferences(pod, cached), ...containerDifferences(pod, cached));
    remarks.push(...podRemarks(pod, cached));
  }
  for (const { uid, namespace, name } of agent) {
    if (!expected.has(uid))
      differences.push({ kind: 'pod-unexpected', pod: podLabel({ namespace, name, id: uid }) });
  }
  return { differences, remarks };
}

/** Whether a pod is in a state in which both sides have to know it. */
export function isCompared({ phase }: Pick<ClusterPod, 'phase'>): boolean {
  return COMPARED_PHASES.has(phase);
}

function podDifferences(pod: ClusterPod, cached: ReportedPod): Difference[] {
  const workload = workloadFromPod(pod.name, pod.labels);
  const fields: [field: string, cluster: string, agent: string][] = [
    ['namespace', pod.namespace, cached.namespace],
    ['name', pod.name, cached.name],
    ['workload', `${workload.kind}/${workload.name}`, `${cached.workloadKind}/${cached.workloadName}`],
  ];
  if (cached.omitted === 0 || cached.labels.has(POLICY_LABEL))
    fields.push([
      `label ${POLICY_LABEL}`,
      labelText(pod.labels.get(POLICY_LABEL)),
      labelText(cached.labels.get(POLICY_LABEL)),
    ]);
  return fields
    .filter(([, inCluster, inAgent]) => inCluster !== inAgent)
    .map(([field, inCluster, inAgent]) => ({
      ...{ kind: 'pod-field', pod: podLabel(pod), field },
      ...{ cluster: inCluster, agent: inAgent },
    }));
}

function containerDifferences(pod: ClusterPod, cached: ReportedPod): Difference[] {
  const found: Difference[] = [];
  const known = new Map(cached.containers.map((container) => [container.id, container]));
  const expected = new Map(pod.containers.map((container) => [container.id, container]));
  for (const { id, name, isRunning } of pod.containers) {
    const container = known.get(id);
    const subject = { pod: podLabel(pod), container: containerLabel({ id, name }) };
    if (container !== undefined) found.push(...fieldDifferences(pod, name, container, subject));
    else if (isRunning && cached.omitted === 0) found.push({ kind: 'container-missing', ...subject });
  }
  for (const container of cached.containers) {
    if (expected.has(container.id)) continue;
    const subject = { pod: podLabel(pod), container: containerLabel(container) };
    found.push({ kind: 'container-unexpected', ...subject });
  }
  return found;
}

function fieldDifferences(
  pod: ClusterPod,
  name: string,
  container: ReportedContainer,
  subject: { readonly pod: string; readonly container: string },
): Difference[] {
  const fields: [field: string, cluster: string, agent: string][] = [
    ['container name', name, container.name],
    ['policy', policyOf(pod), container.policyName],
  ];
  return fields
    .filter(([, inCluster, inAgent]) => inCluster !== inAgent)
    .map(([field, inCluster, inAgent]) => ({
      ...{ kind: 'container-field', ...subject, field },
      ...{ cluster: inCluster, agent: inAgent },
    }));
}

/** `namespace/name` as an agent has it, whose name may be none that a policy can have. */
function policyOf({ namespace, labels }: ClusterPod): string {
  const binding = readPolicyBinding(labels);
  if (binding.kind === 'policy') return `${namespace}/${binding.policyName}`;
  return binding.kind === 'invalid' ? `${namespace}/` : '';
}

/** A runtime keeps a pod's labels as they were when it was made. */
function podRemarks(pod: ClusterPod, cached: ReportedPod): Difference[] {
  const remarks: Difference[] = [];
  const { omitted } = cached;
  const label = podLabel(pod);
  if (omitted > 0) remarks.push({ kind: 'agent-omitted', pod: label, agent: String(omitted) });
  for (const key of new Set([...pod.labels.keys(), ...cached.labels.keys()])) {
    const [inCluster, inAgent] = [pod.labels.get(key), cached.labels.get(key)];
    if (key === POLICY_LABEL || inCluster === inAgent) continue;
    if (inCluster === undefined && RUNTIME_LABEL_PREFIXES.some((prefix) => key.startsWith(prefix))) continue;
    if (inAgent === undefined && omitted > 0) continue;
    const values = { cluster: labelText(inCluster), agent: labelText(inAgent) };
    remarks.push({ kind: 'label-changed', pod: label, field: key, ...values });
  }
  return remarks;
}

function labelText(value: string | undefined): string {
  return value ?? 'none';
}
