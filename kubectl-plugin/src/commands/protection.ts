import { quote } from '@runtime-enforcer/api/field-error';
import { protectionFacts } from '../cluster/protection-facts.ts';
import type { RunCommand } from '../command-context.ts';
import { EXIT_OK } from '../exit-code.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData, printTable } from '../output/print.ts';
import type { Column } from '../output/table.ts';
import { type PodProtection, podProtections } from '../pod-protection.ts';

/** One workload under one policy. */
interface WorkloadRow {
  readonly workload: string;
  readonly kind: string;
  readonly policy: string;
  readonly mode: 'Monitor' | 'Protect' | 'Unknown';
  readonly status: string;
}

const COLUMNS: readonly Column<WorkloadRow>[] = [
  { title: 'WORKLOAD', cell: ({ workload }) => workload },
  { title: 'KIND', cell: ({ kind }) => kind },
  { title: 'POLICY', cell: ({ policy }) => policy },
  { title: 'MODE', cell: ({ mode }) => mode },
  { title: 'STATUS', cell: ({ status }) => status },
];

/** `policy show protection`: which workloads are under which policy. */
export const showProtection: RunCommand = async ({ terminal, connect }, _operands, options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml', 'jsonpath']);
  const connection = await connect();
  const namespace = options.flag('all-namespaces') ? undefined : connection.namespace;
  const facts = await protectionFacts(connection, namespace, terminal.note);
  const rows = new Map<string, WorkloadRow>();
  for (const pod of podProtections(facts)) {
    const row = rowOf(pod);
    // During a rollout a workload has pods of two policies, and two workloads of different kinds may share a name.
    const key = JSON.stringify([row.workload, row.kind, row.policy]);
    if (!rows.has(key)) rows.set(key, row);
  }
  const sorted = [...rows.values()].toSorted(
    (one, other) =>
      compare(one.workload, other.workload) ||
      compare(one.kind, other.kind) ||
      compare(one.policy, other.policy),
  );
  if (format.kind === 'json' || format.kind === 'yaml' || format.kind === 'jsonpath') {
    printData(terminal, format, sorted);
    return EXIT_OK;
  }
  const where = namespace === undefined ? '' : ` in namespace ${quote(namespace)}`;
  printTable(terminal, false, {
    rows: sorted,
    columns: COLUMNS,
    headers: !options.flag('no-headers'),
    empty: `No workloads protected by a policy${where}`,
  });
  return EXIT_OK;
};

function rowOf({ namespace, workloadName, workloadKind, policyName, policy }: PodProtection): WorkloadRow {
  const mode = policy === undefined ? 'Unknown' : policy.spec.mode === 'protect' ? 'Protect' : 'Monitor';
  return {
    workload: `${namespace}/${workloadName}`,
    kind: workloadKind,
    policy: policyName,
    mode,
    status: policy === undefined ? 'Missing' : (policy.status?.phase ?? ''),
  };
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
