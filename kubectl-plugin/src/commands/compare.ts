import { quote } from '@runtime-enforcer/api/field-error';
import { formatDocumentError, parsePolicyDocuments } from '@runtime-enforcer/api/policy-document';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import { compareRules, type RulesDifference } from '@runtime-enforcer/api/rule-changes';
import type { RulesByContainer } from '@runtime-enforcer/api/container-rules';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { getPolicy, getProposal } from '../cluster/objects.ts';
import { policyName, proposalName } from '../cluster/resource-names.ts';
import type { RunCommand } from '../command-context.ts';
import { EXIT_FINDING, EXIT_OK } from '../exit-code.ts';
import { readInput } from '../input-file.ts';
import { counted } from '../output/named.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData } from '../output/print.ts';
import { PluginError, UsageError } from '../plugin-error.ts';
import type { Terminal } from '../terminal.ts';

/** `policy diff POLICY [PROPOSAL]`: what a proposal, or a file, would change in a policy. */
export const diffPolicy: RunCommand = async ({ terminal, connect }, [operand = '', other], options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml']);
  const name = policyName(operand);
  const file = options.text('filename');
  if (file !== undefined && other !== undefined)
    throw new UsageError('give a proposal or --filename, not both');
  const connection = await connect();
  const policy = await getPolicy(connection, name);
  const wanted =
    file === undefined
      ? (await getProposal(connection, proposalName(other ?? name))).spec.rulesByContainer
      : (await policyFromFile(file, name)).spec.rulesByContainer;
  const to = file ?? `wpp/${other ?? name}`;
  return printComparison(terminal, format, {
    from: `wp/${name}`,
    to,
    differences: compareRules(policy.spec.rulesByContainer, wanted),
  });
};

/** `proposal diff PROPOSAL [POLICY]`: the same, asked from the proposal's side. */
export const diffProposal: RunCommand = async ({ terminal, connect }, [operand = '', other], options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml']);
  const name = proposalName(operand);
  const policy = policyName(other ?? name);
  const connection = await connect();
  const rules: RulesByContainer = (await getProposal(connection, name)).spec.rulesByContainer;
  const { spec } = await getPolicy(connection, policy);
  return printComparison(terminal, format, {
    from: `wp/${policy}`,
    to: `wpp/${name}`,
    differences: compareRules(spec.rulesByContainer, rules),
  });
};

/**
 * The policy of a file: the only one, or that of a name.
 *
 * @param file `-` for standard input
 * @throws PluginError with every error of the file
 */
export async function policyFromFile(file: string, name?: string): Promise<WorkloadPolicy> {
  const policies = await policiesFromFile(file);
  const [first] = policies;
  const found = policies.length === 1 ? first : policies.find(({ metadata }) => metadata.name === name);
  if (found !== undefined) return found;
  throw new PluginError(
    `${quote(file)} holds ${policies.length} policies${name === undefined ? '' : `, and none is named ${quote(name)}`}`,
    'give a file with one policy',
  );
}

/** All policies of a file, or of standard input for `-`. */
export async function policiesFromFile(file: string): Promise<readonly WorkloadPolicy[]> {
  return readPolicies(file, await readInput(file));
}

/** @throws PluginError with every error of the content */
export function readPolicies(file: string, content: Uint8Array): readonly WorkloadPolicy[] {
  const parsed = parsePolicyDocuments({ file: file === '-' ? 'standard input' : file, content });
  if (parsed.ok) return parsed.values;
  throw new PluginError(parsed.errors.map(formatDocumentError).join('\n'));
}

interface Comparison {
  readonly from: string;
  readonly to: string;
  readonly differences: readonly RulesDifference[];
}

function printComparison(
  terminal: Terminal,
  format: ReturnType<typeof parseOutputFormat>,
  { from, to, differences }: Comparison,
): typeof EXIT_OK | typeof EXIT_FINDING {
  if (format.kind === 'json' || format.kind === 'yaml') {
    printData(terminal, format, { from, to, differences });
    return differences.length === 0 ? EXIT_OK : EXIT_FINDING;
  }
  if (differences.length === 0) {
    terminal.write('The rules are the same.\n');
    return EXIT_OK;
  }
  const { red, green, bold } = terminal.colors;
  terminal.write(`${red(escapeUnprintable(`--- ${from}`))}\n${green(escapeUnprintable(`+++ ${to}`))}\n`);
  for (const { containerName, container, added, removed, common, otherMountNamespaces } of differences) {
    const only = container === 'both' ? `${counted(common, 'path')} in both` : `container ${container}`;
    terminal.write(`${bold(escapeUnprintable(containerName))} (${only})\n`);
    for (const path of removed) terminal.write(`${red(`- ${escapeUnprintable(path)}`)}\n`);
    for (const path of added) terminal.write(`${green(`+ ${escapeUnprintable(path)}`)}\n`);
    if (otherMountNamespaces !== undefined) {
      terminal.write(`${green(`+ otherMountNamespaces: ${otherMountNamespaces}`)}\n`);
    }
  }
  return EXIT_FINDING;
}
