import { setTimeout as sleep } from 'node:timers/promises';
import { formatFieldError, quote } from '@runtime-enforcer/api/field-error';
import { PROMOTE_LABEL, PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import { promote as policyFrom, PROMOTION_FAILED_CONDITION } from '@runtime-enforcer/api/promotion';
import { reviewProposal } from '@runtime-enforcer/api/proposal-review';
import { POLICY_MODES, type PolicyMode } from '@runtime-enforcer/api/workload-policy';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { Connection } from '../cluster/connection.ts';
import {
  findObject,
  getObject,
  listObjects,
  POLICIES,
  PROPOSALS,
  proposalOf,
  updateObject,
} from '../cluster/objects.ts';
import { proposalName } from '../cluster/resource-names.ts';
import { type CommandContext, dryRunOf, type DryRun, type RunCommand } from '../command-context.ts';
import { parseDuration } from '../duration.ts';
import { reportError } from '../error-text.ts';
import { EXIT_ERROR, EXIT_OK } from '../exit-code.ts';
import { labelsOf, listAt, textAt } from '../output/json-field.ts';
import { counted, named } from '../output/named.ts';
import { PluginError, UsageError } from '../plugin-error.ts';

const POLL_MS = 500;
const WAIT_MS = 30_000;
/** A promotion takes less where all is well. */
const QUIET_MS = 2_000;

interface Promotion {
  readonly mode: PolicyMode;
  readonly dryRun: DryRun;
  /** 0: do not wait. */
  readonly waitMs: number;
}

/** `proposal promote`: labels proposals, and waits until the controller has made their policies. */
export const promote: RunCommand = async (context, operands, options) => {
  const mode = POLICY_MODES.find((each) => each === (options.text('mode') ?? 'monitor'));
  if (mode === undefined) {
    throw new UsageError(
      `invalid mode ${quote(options.text('mode') ?? '')}, expected "monitor" or "protect"`,
    );
  }
  const dryRun = dryRunOf(options);
  const timeout = options.text('timeout');
  const waitMs = timeout === undefined ? WAIT_MS : parseDuration(timeout, '--timeout');
  const promotion: Promotion = { mode, dryRun, waitMs: options.flag('no-wait') ? 0 : waitMs };
  const selector = options.text('selector');
  const ways = [operands.length > 0, options.flag('all'), selector !== undefined].filter(Boolean).length;
  if (ways !== 1) {
    throw new UsageError(
      'name one or more proposals, or give --all or -l SELECTOR: exactly one of the three',
    );
  }
  const wanted = operands.map(proposalName);
  const connection = await context.connect({ dryRun: dryRun === 'server' });
  const names = operands.length > 0 ? wanted : await namesOf(connection, selector);
  if (names.length === 0) {
    context.terminal.note(`No proposals found in namespace ${quote(connection.namespace)}.`);
    return EXIT_OK;
  }
  const failures: unknown[] = [];
  for (const name of names) {
    try {
      await promoteOne(context, connection, name, promotion);
    } catch (error) {
      if (names.length === 1) throw error;
      context.terminal.note(reportError(error).text);
      failures.push(error);
    }
  }
  if (failures.length === 0) return EXIT_OK;
  context.terminal.note(`${counted(failures.length, 'proposal')} of ${names.length} could not be promoted.`);
  return EXIT_ERROR;
};

async function namesOf({ client, namespace }: Connection, selector: string | undefined): Promise<string[]> {
  const proposals = await listObjects(client, PROPOSALS, namespace, selector);
  return proposals.map(({ metadata }) => metadata.name);
}

async function promoteOne(
  { terminal, signal }: CommandContext,
  connection: Connection,
  name: string,
  { mode, dryRun, waitMs }: Promotion,
): Promise<void> {
  const place = { namespace: connection.namespace, name };
  const title = named('WorkloadPolicyProposal', place);
  const found = await findObject(connection.client, PROPOSALS, place);
  if (found === undefined && (await promotedPolicy(connection, name)) !== undefined) {
    terminal.write(`${title} is already promoted to WorkloadPolicy.\n`);
    return;
  }
  const current = found ?? (await getObject(connection.client, PROPOSALS, place));
  if (isPromoted(current)) {
    terminal.write(`${title} is already promoted to WorkloadPolicy.\n`);
    return;
  }
  const proposal = proposalOf(current);
  const policy = policyFrom(proposal, mode);
  if (!policy.ok) throw new PluginError(`${title}: ${policy.errors.map(formatFieldError).join('; ')}`);
  const { warnings, paths } = reviewProposal(proposal);
  if (warnings > 0) {
    terminal.note(
      `${warnings} of ${counted(paths.length, 'path')} should be looked at: kubectl runtime-enforcer proposal review ${name} -n ${place.namespace}`,
    );
  }
  if (dryRun !== 'client') {
    await updateObject(connection, PROPOSALS, place, (object) =>
      isPromoted(object) ? undefined : labelled(object, mode),
    );
  }
  if (dryRun !== 'none') {
    terminal.write(
      `${title} can be promoted to WorkloadPolicy in "${mode}" mode. Run again without --dry-run to do it.\n`,
    );
    return;
  }
  terminal.write(`Promoted ${title} to WorkloadPolicy in "${mode}" mode.\n`);
  if (waitMs === 0) return;
  await waitForPolicy(connection, name, { waitMs, signal, note: terminal.note });
  terminal.write(`${named('WorkloadPolicy', place)} has been created.\n`);
}

async function waitForPolicy(
  connection: Connection,
  name: string,
  { waitMs, signal, note }: { waitMs: number; signal: AbortSignal; note: (line: string) => void },
): Promise<void> {
  const start = performance.now();
  const end = start + waitMs;
  let isTold = false;
  for (;;) {
    if ((await promotedPolicy(connection, name)) !== undefined) return;
    const proposal = await findObject(connection.client, PROPOSALS, {
      namespace: connection.namespace,
      name,
    });
    const failed = listAt(proposal, 'status', 'conditions').find(
      (each) => textAt(each, 'type') === PROMOTION_FAILED_CONDITION && textAt(each, 'status') === 'True',
    );
    if (failed !== undefined) {
      throw new PluginError(`policy promotion failed: ${textAt(failed, 'message')}`, remedyFor(name));
    }
    if (performance.now() + POLL_MS > end) {
      throw new PluginError(
        'policy promotion did not complete successfully: no WorkloadPolicy was made in time',
        'the label is set, and the controller will see it; is it running? kubectl runtime-enforcer doctor',
      );
    }
    if (!isTold && performance.now() > start + QUIET_MS) {
      note(`Waiting: the controller has not made WorkloadPolicy ${quote(name)} yet.`);
      isTold = true;
    }
    await sleep(POLL_MS, undefined, { signal });
  }
}

function remedyFor(name: string): string {
  return `see the events: kubectl describe wpp ${name}`;
}

/** The policy that was made from the proposal of this name; one that was made otherwise is none. */
async function promotedPolicy(connection: Connection, name: string): Promise<KubeObject | undefined> {
  const policy = await findObject(connection.client, POLICIES, { namespace: connection.namespace, name });
  return policy !== undefined && labelsOf(policy).get(PROMOTED_FROM_LABEL) === name ? policy : undefined;
}

function isPromoted(proposal: KubeObject): boolean {
  const label = labelsOf(proposal).get(PROMOTE_LABEL);
  return POLICY_MODES.some((mode) => mode === label);
}

function labelled(proposal: KubeObject, mode: PolicyMode): KubeObject {
  const { metadata } = proposal;
  return { ...proposal, metadata: { ...metadata, labels: { ...metadata.labels, [PROMOTE_LABEL]: mode } } };
}
