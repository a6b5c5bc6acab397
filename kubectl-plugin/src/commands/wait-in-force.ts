import { setTimeout as sleep } from 'node:timers/promises';
import { quote } from '@runtime-enforcer/api/field-error';
import type { Connection } from '../cluster/connection.ts';
import { getObject, type ObjectPlace, POLICIES, policyOf } from '../cluster/objects.ts';
import type { CommandContext, CommandOptions } from '../command-context.ts';
import { parseDuration } from '../duration.ts';
import { counted, named } from '../output/named.ts';
import { PluginError } from '../plugin-error.ts';

const POLL_MS = 500;
const WAIT_MS = 60_000;
const SHOWN_NODES = 3;

/**
 * Waits, where `--wait` says so, until a policy as it is now is in force on every node.
 *
 * @throws PluginError when a node cannot load it, or the time is over
 */
export async function waitInForce(
  { terminal, signal }: CommandContext,
  { client }: Connection,
  place: ObjectPlace,
  options: CommandOptions,
): Promise<void> {
  const timeout = options.text('timeout');
  const waitMs = timeout === undefined ? WAIT_MS : parseDuration(timeout, '--timeout');
  if (!options.flag('wait')) return;
  const { name, namespace } = place;
  const title = named('WorkloadPolicy', place);
  const remedy = `see where: kubectl runtime-enforcer policy show ${name} -n ${namespace}`;
  const end = performance.now() + waitMs;
  let told = '';
  for (;;) {
    const object = await getObject(client, POLICIES, place);
    const { status } = policyOf(object);
    const isCurrent = status?.observedGeneration === object.metadata['generation'];
    if (isCurrent && status?.phase === 'Ready') {
      terminal.write(`${title} is in force on all ${counted(status.totalNodes, 'node')}.\n`);
      return;
    }
    if (isCurrent && status?.phase === 'Failed') {
      const nodes = [...status.nodesWithIssues.keys()].slice(0, SHOWN_NODES).map(quote).join(', ');
      throw new PluginError(
        `${title} is not in force on ${counted(status.failedNodes, 'node')} (${nodes})`,
        remedy,
      );
    }
    const done =
      isCurrent && status !== undefined
        ? `${status.successfulNodes} of ${counted(status.totalNodes, 'node')} have it.`
        : 'no node has told of it.';
    const line = `Waiting: ${done}`;
    if (line !== told) terminal.note(line);
    told = line;
    if (performance.now() + POLL_MS > end)
      throw new PluginError(`${title} was changed, and is not in force on all nodes yet`, remedy);
    await sleep(POLL_MS, undefined, { signal });
  }
}
