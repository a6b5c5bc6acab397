import { setTimeout as sleep } from 'node:timers/promises';
import { quote } from '@runtime-enforcer/api/field-error';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { Connection } from '../cluster/connection.ts';
import { getObject, getPolicy, type ObjectPlace } from '../cluster/objects.ts';
import { policyName } from '../cluster/resource-names.ts';
import { changeTemplate } from '../cluster/template-change.ts';
import {
  containerNames,
  parseWorkload,
  rolloutSentence,
  templateOf,
  templatePolicy,
  type WorkloadResource,
} from '../cluster/workloads.ts';
import { type CommandContext, type CommandOptions, dryRunOf, type RunCommand } from '../command-context.ts';
import { parseDuration } from '../duration.ts';
import { EXIT_ERROR, EXIT_OK, type ExitCode } from '../exit-code.ts';
import { numberAt } from '../output/json-field.ts';
import { named } from '../output/named.ts';
import { PluginError } from '../plugin-error.ts';

const POLL_MS = 1_000;
const WAIT_MS = 300_000;

/** `bind WORKLOAD POLICY`: labels the pods' template, after showing what that will replace. */
export const bind: RunCommand = async (context, [operand = '', policyOperand = ''], options) => {
  const { resource, name } = parseWorkload(operand);
  const policy = policyName(policyOperand);
  return await change(context, options, { resource, name, policy });
};

/** `unbind WORKLOAD`: takes the label away. */
export const unbind: RunCommand = async (context, [operand = ''], options) =>
  await change(context, options, { ...parseWorkload(operand), policy: undefined });

interface Wanted {
  readonly resource: WorkloadResource;
  readonly name: string;
  readonly policy: string | undefined;
}

async function change(
  context: CommandContext,
  options: CommandOptions,
  { resource, name, policy }: Wanted,
): Promise<ExitCode> {
  const { terminal } = context;
  const dryRun = dryRunOf(options);
  const connection = await context.connect({ dryRun: dryRun === 'server' });
  const place: ObjectPlace = { namespace: connection.namespace, name };
  const title = named(resource.kind, place);
  const object = await getObject(connection.client, resource, place);
  const before = templatePolicy(object, resource);
  if (before === policy) {
    const state = policy === undefined ? 'names no policy' : `is already bound to ${quote(policy)}`;
    terminal.write(`${title} ${state}.\n`);
    return EXIT_OK;
  }
  if (resource.kind === 'Job') {
    throw new PluginError(
      `${title}: the template of a Job cannot be changed`,
      'add the label where the Job comes from, and create it anew',
    );
  }
  if (policy !== undefined) {
    for (const line of warnings(await getPolicy(connection, policy), object, resource)) terminal.note(line);
  }
  const from = before === undefined ? '' : ` (now ${quote(before)})`;
  const what =
    policy === undefined ? `take the policy label from ${title}` : `bind ${title} to ${quote(policy)}`;
  terminal.note(`This will ${what}${from}.`);
  terminal.note(rolloutSentence(object, resource));
  if (dryRun === 'none' && !options.flag('yes') && !(await confirmed(context))) {
    terminal.note('Nothing was changed.');
    return EXIT_ERROR;
  }
  if (dryRun !== 'client') await changeTemplate(connection.client, resource, object, policy);
  const done = policy === undefined ? `Unbound ${title}` : `Bound ${title} to ${quote(policy)}`;
  if (dryRun !== 'none') {
    terminal.write(`Would have: ${done}.\n`);
    return EXIT_OK;
  }
  terminal.write(`${done}.\n`);
  if (options.flag('wait'))
    await waitForRollout(context, connection, resource, place, options.text('timeout'));
  return EXIT_OK;
}

function warnings(policy: WorkloadPolicy, object: KubeObject, resource: WorkloadResource): readonly string[] {
  const { name } = policy.metadata;
  const containers = containerNames(templateOf(object, resource));
  const unlisted = containers.filter((container) => !policy.spec.rulesByContainer.has(container));
  const unused = [...policy.spec.rulesByContainer.keys()].filter(
    (container) => !containers.includes(container),
  );
  const free = policy.spec.unlistedContainers === 'allow' ? 'stays unrestricted' : 'may start nothing';
  return [
    ...unlisted.map((container) => `warning: container ${container} is not in policy ${name} and ${free}`),
    ...unused.map(
      (container) => `warning: policy ${name} names container ${container}, which the pods do not have`,
    ),
  ].map(escapeUnprintable);
}

async function confirmed({ terminal }: CommandContext): Promise<boolean> {
  if (!terminal.interactive) {
    throw new PluginError('nobody is there to confirm', 'give --yes, or try it with --dry-run=server');
  }
  const answer = await terminal.ask('Go on? [y/N] ');
  return /^y(es)?$/i.test(answer?.trim() ?? '');
}

async function waitForRollout(
  { terminal, signal }: CommandContext,
  { client }: Connection,
  resource: WorkloadResource,
  place: ObjectPlace,
  timeout: string | undefined,
): Promise<void> {
  if (!['Deployment', 'StatefulSet', 'DaemonSet'].includes(resource.kind)) return;
  const end = performance.now() + (timeout === undefined ? WAIT_MS : parseDuration(timeout, '--timeout'));
  let told = '';
  for (;;) {
    const object = await getObject(client, resource, place);
    const { done, total, observed } = progressOf(object);
    if (observed && done >= total) {
      terminal.write(`${named(resource.kind, place)}: all ${total} pods are new.\n`);
      return;
    }
    const line = `Waiting: ${done} of ${total} pods are new.`;
    if (line !== told) terminal.note(line);
    told = line;
    if (performance.now() + POLL_MS > end) {
      throw new PluginError(
        `${named(resource.kind, place)}: the rollout did not end in time`,
        `the label is set; see: kubectl rollout status ${resource.singular}/${place.name} -n ${place.namespace}`,
      );
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}

function progressOf(object: KubeObject): { done: number; total: number; observed: boolean } {
  const status = (field: string) => numberAt(object, 'status', field) ?? 0;
  const isDaemonSet = object.kind === 'DaemonSet';
  const total = isDaemonSet ? status('desiredNumberScheduled') : (numberAt(object, 'spec', 'replicas') ?? 1);
  const updated = status(isDaemonSet ? 'updatedNumberScheduled' : 'updatedReplicas');
  // While old pods are still there, there are more in all than new ones.
  const old = isDaemonSet ? 0 : Math.max(0, status('replicas') - updated);
  const observed = status('observedGeneration') >= (numberAt(object, 'metadata', 'generation') ?? 0);
  return { done: Math.max(0, updated - old), total, observed };
}
