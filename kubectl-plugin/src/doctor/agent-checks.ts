import { type KubeObject, objectKey } from '@runtime-enforcer/kube/kube-object';
import { isReady, nodeOf } from '../cluster/components.ts';
import { listAt, textAt } from '../output/json-field.ts';
import type { ClusterFacts } from './facts.ts';
import { type Finding, INSTALL_COMMAND } from './finding.ts';
import { logsOf } from './installation-checks.ts';
import { type Sample, samplesOf } from './metric-samples.ts';

const CONTAINERD = /^containerd:\/\/v?(\d+)\.(\d+)/;
/** From here on containerd can refuse containers while no agent is connected. */
const VALIDATOR_SINCE = [2, 2] as const;

/** Every node has an agent that is ready. */
export function checkAgents({ agents, nodes, agentMetrics }: ClusterFacts): readonly Finding[] {
  if (!agents.ok) return [];
  const base = { check: 'agents', severity: 'error' } as const;
  if (agents.value.length === 0) {
    return [{ ...base, subject: 'agent', message: 'no agent runs on any node', repair: INSTALL_COMMAND }];
  }
  const findings: Finding[] = agents.value
    .filter((agent) => !isReady(agent))
    .map((agent) => {
      const subject = `agent ${objectKey(agent)} on node ${nodeOf(agent)}`;
      const metrics = agentMetrics.get(objectKey(agent));
      return metrics?.ok === true && isReleased(samplesOf(metrics.value))
        ? {
            ...{
              ...base,
              subject,
              message: 'somebody has taken all enforcement off the node (agent release)',
            },
            repair: `${execIn(agent)} resume`,
          }
        : { ...base, subject, message: `it is not ready (${reasonOf(agent)})`, repair: logsOf(agent) };
    });
  const covered = new Set(agents.value.map(nodeOf));
  for (const node of nodes.ok ? nodes.value : []) {
    const { name } = node.metadata;
    if (covered.has(name)) continue;
    findings.push({
      ...base,
      subject: `node ${name}`,
      message: 'it has no agent: nothing is enforced there',
      repair: `${INSTALL_COMMAND} --reset-then-reuse-values --set-json 'agent.tolerations=[{"operator":"Exists"}]'`,
    });
  }
  return findings;
}

/** Somebody wants it so, until it is resumed. */
function isReleased(samples: readonly Sample[]): boolean {
  return samples.some(
    ({ name, labels, value }) =>
      name === 'runtime_enforcer_role' && labels.get('role') === 'released' && value === 1,
  );
}

/** The beginning of a command of the agent's own. */
function execIn({ metadata }: KubeObject): string {
  return `kubectl exec -n ${metadata.namespace ?? ''} ${metadata.name} -- agent`;
}

/** What the ready agents say about themselves. */
export function checkAgentMetrics({ agents, agentMetrics }: ClusterFacts): readonly Finding[] {
  const pods = agents.ok ? agents.value : [];
  return pods.flatMap((agent): readonly Finding[] => {
    const metrics = agentMetrics.get(objectKey(agent));
    if (metrics === undefined || !isReady(agent)) return [];
    const subject = `agent on node ${nodeOf(agent)}`;
    if (!metrics.ok) {
      const message = `its metrics cannot be read (${metrics.why})`;
      return [{ check: 'agent-metrics', severity: 'note', subject, message }];
    }
    const samples = samplesOf(metrics.value);
    const value = (name: string) =>
      samples.find((sample) => sample.name === `runtime_enforcer_${name}`)?.value;
    const override = samples
      .find(({ name }) => name === 'runtime_enforcer_override_info')
      ?.labels.get('override');
    const check = 'agent-metrics';
    const exec = execIn(agent);
    return [
      ...(value('attached') === 0
        ? [
            {
              check,
              severity: 'error',
              subject,
              message: 'somebody took the program off the kernel',
              repair: `kubectl delete pod -n ${agent.metadata.namespace ?? ''} ${agent.metadata.name}`,
            } as const,
          ]
        : []),
      ...(value('nri_connected') === 0
        ? [
            {
              check,
              severity: 'error',
              subject,
              message: 'it is not connected to the container runtime',
              repair: `${exec} check`,
            } as const,
          ]
        : []),
      ...(value('degraded') === 1 ? [degraded(samples, subject, `${exec} check`)] : []),
      ...((value('recursion_misses_total') ?? 0) > 0 ? [missed(samples, subject, `${exec} check`)] : []),
      ...(override !== undefined && override !== '' && override !== 'none'
        ? [
            {
              check,
              severity: 'warning',
              subject,
              message: `an operator has set all its policies to ${override}`,
              repair: `${exec} override --mode clear`,
            } as const,
          ]
        : []),
    ];
  });
}

/** Runtimes that start containers without asking while no agent is connected. */
export function checkRuntimes({ nodes }: ClusterFacts): readonly Finding[] {
  const old = (nodes.ok ? nodes.value : []).filter((node) => {
    const version = CONTAINERD.exec(textAt(node, 'status', 'nodeInfo', 'containerRuntimeVersion'));
    if (version === null) return false;
    const [major, minor] = [Number(version[1]), Number(version[2])];
    return major < VALIDATOR_SINCE[0] || (major === VALIDATOR_SINCE[0] && minor < VALIDATOR_SINCE[1]);
  });
  if (old.length === 0) return [];
  return [
    {
      check: 'runtime-validator',
      severity: 'note',
      subject: `${old.length} nodes with containerd before ${VALIDATOR_SINCE.join('.')}`,
      message: 'containers that start while no agent is connected are bound only afterwards',
    },
  ];
}

function degraded(samples: readonly Sample[], subject: string, repair: string): Finding {
  const attachment = samples.find(({ name }) => name === 'runtime_enforcer_attachment_info')?.labels;
  const how =
    attachment === undefined ? '' : ` (${attachment.get('kind') ?? ''} on ${attachment.get('kernel') ?? ''})`;
  const message = `an exec can pass unchecked on this kernel${how}; boot it with the BPF LSM (lsm=...,bpf)`;
  return { check: 'agent-metrics', severity: 'warning', subject, message, repair };
}

function missed(samples: readonly Sample[], subject: string, repair: string): Finding {
  const count = samples.find(({ name }) => name === 'runtime_enforcer_recursion_misses_total')?.value ?? 0;
  const message = `the kernel skipped the program ${count} times (recursion_misses); each may be an exec that passed`;
  return { check: 'agent-metrics', severity: 'warning', subject, message, repair };
}

function reasonOf(pod: KubeObject): string {
  const waiting = listAt(pod, 'status', 'containerStatuses')
    .map(
      (status) =>
        textAt(status, 'state', 'waiting', 'reason') || textAt(status, 'state', 'terminated', 'reason'),
    )
    .find((reason) => reason !== '');
  return waiting ?? (textAt(pod, 'status', 'phase') || 'unknown');
}
