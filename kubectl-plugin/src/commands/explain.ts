import { type ExplainedOutcome, explainExec } from '@runtime-enforcer/api/explain';
import { quote } from '@runtime-enforcer/api/field-error';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { objectNameError } from '@runtime-enforcer/api/kubernetes-name';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { Connection } from '../cluster/connection.ts';
import { findObject, getObject, PODS, POLICIES, policyOf } from '../cluster/objects.ts';
import { containerNames } from '../cluster/workloads.ts';
import type { RunCommand } from '../command-context.ts';
import { executableArgument } from '../executable-argument.ts';
import { EXIT_FINDING, EXIT_OK } from '../exit-code.ts';
import { labelsOf, textAt, textsAt } from '../output/json-field.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData } from '../output/print.ts';
import { shellWord } from '../output/shell-word.ts';
import { PluginError, UsageError } from '../plugin-error.ts';

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container';

const VERDICTS = {
  allowed: 'The exec is allowed.',
  unrestricted: 'The exec is not restricted.',
  denied: 'The exec is denied (operation not permitted), and reported as a violation.',
  reported: 'The exec happens, and is reported as a violation.',
  unbound: 'The pod is not bound to any policy.',
} as const satisfies Record<ExplainedOutcome, string>;

/** `explain POD PATH`: what happens if a container starts that path, and why. Exit code 3 where it is a violation. */
export const explain: RunCommand = async (
  { terminal, connect },
  [podOperand = '', pathText = ''],
  options,
) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml', 'jsonpath']);
  const podName = podOperand.replace(/^(pod|pods|po)\//, '');
  if (objectNameError(podName, []) !== undefined)
    throw new UsageError(`${quote(podName)} is not the name of a pod`);
  const path = executableArgument(pathText);
  const connection = await connect();
  const { client, namespace } = connection;
  const pod = await getObject(client, PODS, { namespace, name: podName });
  const container = containerOf(pod, options.text('container'), terminal.note);
  const labels = labelsOf(pod);
  const nodeName = textAt(pod, 'spec', 'nodeName');
  const explanation = explainExec({
    podName,
    labels,
    nodeName: nodeName === '' ? undefined : nodeName,
    container,
    path,
    policy: await policyNamed(connection, labels.get(POLICY_LABEL)),
  });
  const { outcome, steps, sameName, nodeIssue } = explanation;
  const isViolation = outcome === 'denied' || outcome === 'reported';
  const exitCode = isViolation ? EXIT_FINDING : EXIT_OK;
  if (format.kind === 'json' || format.kind === 'yaml' || format.kind === 'jsonpath') {
    printData(terminal, format, { pod: podName, container, path, ...explanation });
    return exitCode;
  }
  for (const { question, answer } of steps) terminal.write(`${escapeUnprintable(`${question} ${answer}`)}\n`);
  const { green, red, yellow } = terminal.colors;
  const paint = { allowed: green, unrestricted: green, denied: red, reported: yellow, unbound: yellow }[
    outcome
  ];
  terminal.write(`\n${paint(VERDICTS[outcome])}\n`);
  if (nodeIssue !== undefined) {
    terminal.note(`The node may still decide by an older state of the policy (${nodeIssue.code}).`);
  }
  if (sameName.length > 0) {
    const listed = sameName.map(escapeUnprintable).join(', ');
    terminal.note(
      `On the list is ${listed}. The kernel decides by the path behind all symbolic links: realpath tells it.`,
    );
  }
  if (isViolation && sameName.length === 0) {
    const policy = labels.get(POLICY_LABEL) ?? '';
    terminal.note(
      escapeUnprintable(
        `To allow it: kubectl runtime-enforcer policy allow ${policy} ${container} ${shellWord(path)} -n ${namespace}`,
      ),
    );
  }
  return exitCode;
};

async function policyNamed({ client, namespace }: Connection, name: string | undefined) {
  if (name === undefined || objectNameError(name, []) !== undefined) return 'missing';
  const object = await findObject(client, POLICIES, { namespace, name });
  return object === undefined ? 'missing' : policyOf(object);
}

function containerOf(pod: KubeObject, wanted: string | undefined, note: (line: string) => void): string {
  const names = containerNames(pod);
  if (wanted !== undefined) {
    if (names.includes(wanted)) return wanted;
    throw new PluginError(
      `container ${quote(wanted)} not found in pod ${quote(pod.metadata.name)}`,
      `it has: ${names.map(escapeUnprintable).join(', ')}`,
    );
  }
  const annotated = textsAt(pod, 'metadata', 'annotations').get(DEFAULT_CONTAINER);
  const main = containerNames({
    spec: { containers: (pod['spec'] as { containers?: unknown } | undefined)?.containers },
  });
  const chosen = main.find((name) => name === annotated) ?? main[0];
  if (chosen === undefined) throw new PluginError(`pod ${quote(pod.metadata.name)} has no containers`);
  if (names.length > 1) {
    note(
      `Taken is container ${escapeUnprintable(chosen)} of: ${names.map(escapeUnprintable).join(', ')} (choose with -c)`,
    );
  }
  return chosen;
}
