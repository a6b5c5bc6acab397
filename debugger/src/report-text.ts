import { bindingLabel } from './compare-bindings.ts';
import type { AgentCache } from './agent-cache.ts';
import { containerLabel, differenceText, podLabel, shown } from './difference.ts';
import type { ClusterReport, NodeReport, NodeState } from './node-report.ts';

/** Of one node: who has more reads JSON. */
const MAX_DIFFERENCE_LINES = 200;
const MAX_DUMP_LINES = 500;

const STATE_TEXTS: Readonly<Record<NodeState, string>> = {
  aligned: 'caches are aligned',
  differences: 'found differences',
  'no-agent-cache': 'no agent cache available',
  'unexpected-agent-cache': 'unexpected agent cache',
};

/** A report for people: safe to print, whatever the names in it. */
export function reportText({ time, nodes, agentCaches, reports }: ClusterReport): string {
  return [
    `== Caches diff with cluster state: ${time} ==`,
    `=== Nodes in the cluster: ${nodes}, agent caches: ${agentCaches}.`,
    ...reports.flatMap(nodeLines),
    '',
  ].join('\n');
}

function nodeLines({ node, state, reason, differences, remarks, cache }: NodeReport): string[] {
  const why = reason === undefined ? '' : `: ${shown(reason)}`;
  return [
    `=== Node "${shown(node)}": ${STATE_TEXTS[state]}${why}`,
    ...bounded(
      differences.map((difference) => `- ${differenceText(difference)}`),
      MAX_DIFFERENCE_LINES,
    ),
    ...bounded(
      remarks.map((remark) => `* ${differenceText(remark)}`),
      MAX_DIFFERENCE_LINES,
    ),
    ...(cache === undefined ? [] : dumpLines(cache)),
  ];
}

function dumpLines({ pods, bindings }: AgentCache): string[] {
  const podLines = pods.flatMap((pod) => {
    const { namespace, name, uid: id, workloadKind, workloadName, containers } = pod;
    return [
      `${shown(podLabel({ namespace, name, id }))}: ${shown(`${workloadKind}/${workloadName}`)}`,
      ...containers.map((container) => {
        const { state, policyName, cgroupId, slot } = container;
        const policy = policyName === '' ? '' : ` by ${shown(policyName)}`;
        const place = slot === 0 ? '' : `, place ${slot}`;
        return `  container ${shown(containerLabel(container))}: ${state}${policy}, cgroup ${cgroupId}${place}`;
      }),
    ];
  });
  const lines = [`==== Agent cache dump (${pods.length} pods)`, ...bounded(podLines, MAX_DUMP_LINES)];
  if (typeof bindings === 'string') return lines;
  const bindingLines = bindings.map((binding) => {
    const { policyId, mode, learning, slotCgroupId, indexed, namespaceIndexed } = binding;
    const use = learning ? 'learning' : policyId === 0 ? 'no policy' : `policy id ${policyId}, ${mode}`;
    const odd = [
      ...(indexed ? [] : ['not in the index of cgroups']),
      ...(namespaceIndexed ? [] : ['not in the index of mount namespaces']),
      ...(slotCgroupId === binding.cgroupId ? [] : [`says to be of cgroup ${slotCgroupId}`]),
    ];
    return `${bindingLabel(binding)}: ${[use, ...odd].join(', ')}`;
  });
  return [...lines, `==== Kernel dump (${bindings.length} places)`, ...bounded(bindingLines, MAX_DUMP_LINES)];
}

function bounded(lines: readonly string[], most: number): string[] {
  if (lines.length <= most) return [...lines];
  return [...lines.slice(0, most), `… and ${lines.length - most} more lines, see -o json`];
}
