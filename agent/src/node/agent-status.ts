import type { BoundContainer } from '../containers/bound-container.ts';
import type { EnforcerAttachment, Override } from '../kernel/enforcer.ts';
import type { PolicyState } from '../policies/policy-state.ts';
import { shownName } from './shown-name.ts';

/** What a running agent tells of itself, as JSON. */
export interface AgentStatus {
  readonly version: string;
  readonly pid: number;
  readonly nodeName: string;
  readonly startedAt: string;
  readonly attachment: EnforcerAttachment;
  /** False: somebody took the enforcement off this node; a restart of the agent brings it back. */
  readonly attached: boolean;
  readonly override: Override;
  readonly nriConnected: boolean;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly recursionMisses: number;
  readonly policies: readonly ({ readonly name: string } & PolicyState)[];
  readonly containers: readonly ContainerStatus[];
}

export type ContainerStatus = Pick<
  BoundContainer,
  'namespace' | 'podName' | 'containerName' | 'containerId' | 'state' | 'policy'
> & {
  /** Counted by the kernel, whatever became of the records. */
  readonly violations: number;
};

/** Rows of a list that the text form prints. */
const MAX_ROWS = 200;

/** The status for people to read; names that tenants chose cannot lead their terminal astray. */
export function formatStatus(status: AgentStatus): string {
  const { attachment, policies, containers, outcomes } = status;
  const enforcement = status.attached
    ? `${attachment.kind} (${attachment.programs.join(', ')}), ${attachment.adopted}`
    : 'none: it was taken off this node; restart the agent to bring it back';
  const facts = [
    ['agent', `${status.version}, pid ${status.pid}, on ${status.nodeName} since ${status.startedAt}`],
    ['kernel', attachment.kernel],
    ['enforcement', enforcement],
    ...(attachment.degraded === undefined ? [] : [['degraded', attachment.degraded]]),
    ['override', status.override],
    ['runtime', status.nriConnected ? 'connected' : 'not connected: containers start unasked'],
  ];
  const shownOutcomes = Object.entries(outcomes).filter(([, count]) => count > 0);
  return [
    table(facts),
    section('Policies', policies, ({ name, state, mode, paths, message = '' }) => [
      ...[name, state, mode, `${paths} paths`, message],
    ]),
    section('Containers', containers, ({ namespace, podName, containerName, state, policy, violations }) => [
      ...[
        [namespace, podName, containerName].map(shownName).join('/'),
        state,
        policy?.split('/').map(shownName).join('/') ?? '',
      ],
      violations === 0 ? '' : `${violations} violations`,
    ]),
    section('Outcomes', shownOutcomes, ([name, count]) => [name, String(count)]),
    ...(status.recursionMisses === 0
      ? []
      : [`Execs that the kernel did not check: ${status.recursionMisses}\n`]),
  ].join('\n');
}

function section<T>(title: string, items: readonly T[], row: (item: T) => readonly string[]): string {
  const rest = items.length > MAX_ROWS ? `  and ${items.length - MAX_ROWS} more; --json lists all\n` : '';
  const none = items.length === 0 ? '  none\n' : '';
  return `${title} (${items.length})\n${table(items.slice(0, MAX_ROWS).map(row))}${none}${rest}`;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, cell.length)));
  return rows
    .map(
      (row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd() + '\n',
    )
    .join('');
}
