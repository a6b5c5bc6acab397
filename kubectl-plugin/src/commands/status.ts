import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { findComponents, isReady, nodeOf } from '../cluster/components.ts';
import { listObjects, PROPOSALS } from '../cluster/objects.ts';
import { protectionFacts } from '../cluster/protection-facts.ts';
import type { CommandContext, RunCommand } from '../command-context.ts';
import { EXIT_OK } from '../exit-code.ts';
import { labelsOf, textAt } from '../output/json-field.ts';
import { counted } from '../output/named.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData, printTable } from '../output/print.ts';
import type { Column } from '../output/table.ts';
import { type PodProtection, podProtections, type ProtectionFacts } from '../pod-protection.ts';
import { PROMOTE_LABEL } from '@runtime-enforcer/api/keys';

const NODES = { group: '', version: 'v1', plural: 'nodes' };

/** `status`: one screen about the cluster, or with `--pods` a line for each pod that names a policy. */
export const status: RunCommand = async (context, _operands, options) => {
  const { terminal, flags } = context;
  const format = parseOutputFormat(options.text('output'), ['table', 'wide', 'json', 'yaml', 'jsonpath']);
  const connection = await context.connect();
  const oneNamespace = flags.namespace !== undefined && !options.flag('all-namespaces');
  const namespace = oneNamespace ? connection.namespace : undefined;
  const facts = await protectionFacts(connection, namespace, terminal.note);
  const pods = podProtections(facts);
  const isTable = format.kind === 'table' || format.kind === 'name';
  if (options.flag('pods')) {
    if (!isTable) printData(terminal, format, pods.map(plainPod));
    else {
      printTable(terminal, format.kind === 'table' && format.wide, {
        rows: pods,
        columns: podColumns(context),
        headers: !options.flag('no-headers'),
        empty: 'No pod names a policy.',
      });
    }
    return EXIT_OK;
  }
  const summary = await summarize(connection.client, namespace, facts, pods);
  if (!isTable) printData(terminal, format, summary);
  else terminal.write(summaryText(summary));
  return EXIT_OK;
};

interface Summary extends Readonly<Record<string, unknown>> {
  readonly kubernetes: string;
  readonly agents:
    | { readonly ready: number; readonly nodes: number | undefined; readonly without: readonly string[] }
    | undefined;
  readonly controllers: { readonly ready: number; readonly all: number } | undefined;
  readonly policies: Readonly<Record<string, number>>;
  readonly violations: { readonly active: number; readonly total: number };
  readonly proposals: { readonly all: number; readonly promoting: number };
  readonly pods: Readonly<Record<PodProtection['enforcement']['state'], number>>;
}

async function summarize(
  client: ApiClient,
  namespace: string | undefined,
  { policies }: ProtectionFacts,
  pods: readonly PodProtection[],
): Promise<Summary> {
  const [version, proposals, components, nodes] = await Promise.all([
    client.request({ path: '/version' }),
    listObjects(client, PROPOSALS, namespace),
    permitted(async () => await findComponents(client)),
    permitted(async () => await listObjects(client, NODES, undefined)),
  ]);
  const agents = components?.find(({ component }) => component === 'agent')?.pods;
  const controllers = components?.find(({ component }) => component === 'controller')?.pods;
  const ready = new Set(agents?.filter(isReady).map(nodeOf));
  const all = [...policies.values()];
  const sum = (count: (policy: WorkloadPolicy) => number | undefined) =>
    all.reduce((total, policy) => total + (count(policy) ?? 0), 0);
  const podCount = (state: PodProtection['enforcement']['state']) =>
    pods.filter(({ enforcement }) => enforcement.state === state).length;
  return {
    kubernetes: textAt(version, 'gitVersion'),
    agents: agents && {
      ready: ready.size,
      nodes: nodes?.length,
      without: nodes?.map(({ metadata }) => metadata.name).filter((name) => !ready.has(name)) ?? [],
    },
    controllers: controllers && { ready: controllers.filter(isReady).length, all: controllers.length },
    policies: {
      all: all.length,
      protect: all.filter(({ spec }) => spec.mode === 'protect').length,
      monitor: all.filter(({ spec }) => spec.mode === 'monitor').length,
      ready: all.filter((policy) => policy.status?.phase === 'Ready').length,
      failed: all.filter((policy) => policy.status?.phase === 'Failed').length,
    },
    violations: {
      active: sum((policy) => policy.status?.activeViolationCount),
      total: sum((policy) => policy.status?.violationCount),
    },
    proposals: {
      all: proposals.length,
      promoting: proposals.filter((proposal) => labelsOf(proposal).has(PROMOTE_LABEL)).length,
    },
    pods: {
      enforced: podCount('enforced'),
      notEnforced: podCount('notEnforced'),
      pending: podCount('pending'),
      finished: podCount('finished'),
    },
  };
}

/** Undefined where one may not look. */
async function permitted<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}

function summaryText(summary: Summary): string {
  const { agents, controllers, policies, violations, proposals, pods } = summary;
  const { all = 0, protect = 0, monitor = 0, ready = 0, failed = 0 } = policies;
  const unseen = 'not visible to you';
  const without =
    agents === undefined || agents.without.length === 0 ? '' : `, none on ${shorten(agents.without)}`;
  const onNodes = agents?.nodes === undefined ? '' : ` on ${counted(agents.nodes, 'node')}`;
  const lines: readonly (readonly [string, string])[] = [
    ['Kubernetes', summary.kubernetes],
    ['Controller', controllers === undefined ? unseen : `${controllers.ready} of ${controllers.all} ready`],
    ['Agents', agents === undefined ? unseen : `${agents.ready} ready${onNodes}${without}`],
    ['Policies', `${all} (${protect} protect, ${monitor} monitor; ${ready} ready, ${failed} failed)`],
    ['Proposals', `${proposals.all} (${proposals.promoting} being promoted)`],
    ['Violations', `${violations.active} active, ${violations.total} in total`],
    [
      'Pods',
      `${pods.enforced} enforced, ${pods.notEnforced} not, ${pods.pending} pending, ${pods.finished} finished`,
    ],
  ];
  return lines.map(([name, text]) => `${`${name}:`.padEnd(12)}${escapeUnprintable(text)}\n`).join('');
}

const SHOWN_NODES = 5;

function shorten(names: readonly string[]): string {
  const more = names.length - SHOWN_NODES;
  return names.slice(0, SHOWN_NODES).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function podColumns({ terminal }: CommandContext): readonly Column<PodProtection>[] {
  const { red, green } = terminal.colors;
  return [
    { title: 'NAMESPACE', cell: ({ namespace }) => namespace },
    { title: 'POD', cell: ({ podName }) => podName },
    { title: 'WORKLOAD', wide: true, cell: (pod) => `${pod.workloadKind}/${pod.workloadName}` },
    { title: 'NODE', cell: ({ nodeName }) => nodeName },
    { title: 'POLICY', cell: ({ policyName }) => policyName },
    { title: 'MODE', cell: ({ policy }) => policy?.spec.mode ?? '' },
    {
      title: 'ENFORCED',
      cell: ({ enforcement }) =>
        enforcement.state === 'notEnforced' ? `no: ${enforcement.why}` : words(enforcement.state),
      paint: (text, { enforcement }) => {
        if (enforcement.state === 'enforced') return green(text);
        return enforcement.state === 'notEnforced' ? red(text) : text;
      },
    },
  ];
}

function words(state: 'enforced' | 'finished' | 'pending'): string {
  return state === 'enforced' ? 'yes' : state;
}

function plainPod({ policy, ...pod }: PodProtection): Readonly<Record<string, unknown>> {
  return { ...pod, mode: policy?.spec.mode ?? null };
}
