import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import type { RulesByContainer } from '@runtime-enforcer/api/container-rules';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { WorkloadPolicyProposal } from '@runtime-enforcer/api/workload-policy-proposal';
import {
  getObject,
  type NamedResource,
  POLICIES,
  policyOf,
  PROPOSALS,
  proposalOf,
  typeName,
} from '../cluster/objects.ts';
import { policyName, proposalName } from '../cluster/resource-names.ts';
import type { RunCommand } from '../command-context.ts';
import { EXIT_OK } from '../exit-code.ts';
import { counted } from '../output/named.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printObjects } from '../output/print.ts';
import { formatTable } from '../output/table.ts';
import type { Terminal } from '../terminal.ts';
import { violationColumns, type ViolationRow } from './violation-table.ts';

/** `policy show NAME`: the policy as a person reads it. */
export const showPolicy: RunCommand = async ({ terminal, connect, now }, [operand = ''], options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml', 'name', 'jsonpath']);
  const name = policyName(operand);
  const { client, namespace } = await connect();
  const object = await getObject(client, POLICIES, { namespace, name });
  if (format.kind === 'table') describePolicy(terminal, policyOf(object), now());
  else printOne(terminal, format, object, POLICIES);
  return EXIT_OK;
};

/** `proposal show NAME`. */
export const showProposal: RunCommand = async ({ terminal, connect }, [operand = ''], options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml', 'name', 'jsonpath']);
  const name = proposalName(operand);
  const { client, namespace } = await connect();
  const object = await getObject(client, PROPOSALS, { namespace, name });
  if (format.kind === 'table') describeProposal(terminal, proposalOf(object));
  else printOne(terminal, format, object, PROPOSALS);
  return EXIT_OK;
};

function printOne(
  terminal: Terminal,
  format: ReturnType<typeof parseOutputFormat>,
  object: Awaited<ReturnType<typeof getObject>>,
  resource: NamedResource,
): void {
  const table = { rows: [], columns: [], headers: true, empty: '' };
  printObjects(terminal, format, { objects: [object], single: true, type: typeName(resource), table });
}

function describePolicy(terminal: Terminal, { metadata, spec, status }: WorkloadPolicy, now: Date): void {
  const { bold, yellow } = terminal.colors;
  const line = (text: string) => terminal.write(`${escapeUnprintable(text)}\n`);
  line(`Name:        ${metadata.name}`);
  line(`Namespace:   ${metadata.namespace}`);
  line(`Mode:        ${spec.mode}`);
  const others = spec.unlistedContainers === 'allow' ? 'anything' : 'nothing';
  line(`Others:      containers that are not named here may start ${others}`);
  if (spec.binding.autoBind) line('Auto-bind:   new pods of the workload get the label');
  if (status === undefined) line('Status:      none yet');
  else {
    const { phase = '', successfulNodes, totalNodes } = status;
    line(`Status:      ${phase} (${successfulNodes} of ${counted(totalNodes, 'node')})`);
    for (const [node, issue] of status.nodesWithIssues) {
      terminal.write(yellow(escapeUnprintable(`  ${node}: ${issue.code} ${issue.message ?? ''}`)) + '\n');
    }
    for (const condition of status.conditions) {
      line(`Condition:   ${condition.type}=${condition.status} (${condition.reason}) ${condition.message}`);
    }
  }
  describeRules(terminal, spec.rulesByContainer);
  const rows: ViolationRow[] = (status?.violations ?? []).map((record) => ({
    namespace: metadata.namespace,
    policy: metadata.name,
    record,
  }));
  if (rows.length === 0) return;
  const { activeViolationCount = 0, violationCount = 0 } = status ?? {};
  terminal.write(`\n${bold('Violations')} (${activeViolationCount} active, ${violationCount} in total)\n`);
  terminal.write(formatTable(rows, violationColumns(now, { places: false })));
}

function describeProposal(terminal: Terminal, { metadata, spec, status }: WorkloadPolicyProposal): void {
  const line = (text: string) => terminal.write(`${escapeUnprintable(text)}\n`);
  line(`Name:        ${metadata.name}`);
  line(`Namespace:   ${metadata.namespace}`);
  const [owner] = metadata.ownerReferences;
  if (owner !== undefined) line(`Workload:    ${owner.kind}/${owner.name}`);
  for (const condition of status?.conditions ?? []) {
    line(`Condition:   ${condition.type}=${condition.status} (${condition.reason}) ${condition.message}`);
  }
  describeRules(terminal, spec.rulesByContainer);
}

function describeRules(terminal: Terminal, rules: RulesByContainer): void {
  const { bold } = terminal.colors;
  for (const [container, { executables }] of [...rules].toSorted(([one], [other]) =>
    one < other ? -1 : 1,
  )) {
    const { allowed, otherMountNamespaces } = executables;
    const note = otherMountNamespaces === 'unchecked' ? ', other mount namespaces unchecked' : '';
    terminal.write(`\n${bold(escapeUnprintable(container))} (${counted(allowed.length, 'path')}${note})\n`);
    for (const path of allowed.toSorted()) terminal.write(`  ${escapeUnprintable(path)}\n`);
  }
}
