import { quote } from '@runtime-enforcer/api/field-error';
import { ACKNOWLEDGE_ANNOTATION_PREFIX } from '@runtime-enforcer/api/keys';
import { MAX_MESSAGE_CHARACTERS } from '@runtime-enforcer/api/limits';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { getObject, POLICIES, updateObject } from '../cluster/objects.ts';
import { policyName } from '../cluster/resource-names.ts';
import { type CommandContext, type CommandOptions, dryRunOf, type RunCommand } from '../command-context.ts';
import { EXIT_OK } from '../exit-code.ts';
import { listAt, numberAt, textAt, textsAt } from '../output/json-field.ts';
import { named } from '../output/named.ts';
import { PluginError, UsageError } from '../plugin-error.ts';

const DECIMAL = /^\d{1,15}$/;

/** `policy ack`: asks the controller, by an annotation, to file a violation away with a reason. */
export const acknowledge: RunCommand = async (context, [operand = '', idText = ''], options) => {
  const { terminal } = context;
  const dryRun = dryRunOf(options);
  const name = policyName(operand);
  if (!DECIMAL.test(idText)) {
    throw new UsageError(`invalid violation id ${quote(idText)}: must be a decimal integer`);
  }
  const id = Number(idText);
  const connection = await context.connect({ dryRun: dryRun === 'server' });
  const place = { namespace: connection.namespace, name };
  const title = named('WorkloadPolicy', place);
  const violation = listAt(await getObject(connection.client, POLICIES, place), 'status', 'violations').find(
    (each) => numberAt(each, 'id') === id,
  );
  if (violation === undefined) {
    throw new PluginError(
      `violation id ${id} not found in status.violations`,
      `see the ids: kubectl runtime-enforcer violations --policy ${name} -n ${place.namespace}`,
    );
  }
  const reason = await reasonFor(context, options);
  const key = `${ACKNOWLEDGE_ANNOTATION_PREFIX}${id}`;
  const annotate = (policy: KubeObject): KubeObject | undefined => {
    const { metadata } = policy;
    const annotations = Object.fromEntries(textsAt(policy, 'metadata', 'annotations'));
    if (annotations[key] === reason) return undefined;
    return { ...policy, metadata: { ...metadata, annotations: { ...annotations, [key]: reason } } };
  };
  if (annotate(await getObject(connection.client, POLICIES, place)) === undefined) {
    terminal.write(`No changes required for ${title}.\n`);
    return EXIT_OK;
  }
  if (dryRun !== 'client') await updateObject(connection, POLICIES, place, annotate);
  if (dryRun === 'none') {
    terminal.write(`Successfully acknowledged violation ${id} for ${title}.\n`);
    return EXIT_OK;
  }
  terminal.write(`Would acknowledge violation ${id} for ${title}.\n`);
  terminal.write(`annotation: ${key}: ${reason}\n`);
  const [executable, container, pod] = ['executablePath', 'containerName', 'podName'].map((field) =>
    escapeUnprintable(textAt(violation, field)),
  );
  terminal.write(`executable: ${executable ?? ''}, container: ${container ?? ''}, pod: ${pod ?? ''}\n`);
  terminal.write('Dry-run completed; no changes were persisted.\n');
  return EXIT_OK;
};

async function reasonFor({ terminal }: CommandContext, options: CommandOptions): Promise<string> {
  const given = options.text('reason') ?? (await terminal.ask('Reason for acknowledgement: ')) ?? '';
  const reason = given.trim();
  if (reason === '') throw new UsageError('a reason is required', 'give it with --reason "..."');
  if (Array.from(reason.slice(0, 2 * MAX_MESSAGE_CHARACTERS + 1)).length > MAX_MESSAGE_CHARACTERS) {
    throw new UsageError(
      `the reason is longer than ${MAX_MESSAGE_CHARACTERS} characters`,
      'write a shorter one',
    );
  }
  if (escapeUnprintable(reason) !== reason) {
    throw new UsageError(
      `the reason ${quote(reason)} holds control or invisible characters`,
      'write one line of text',
    );
  }
  return reason;
}
