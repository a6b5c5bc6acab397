import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import { getObject, POLICIES, updateObject } from '../cluster/objects.ts';
import { policyName } from '../cluster/resource-names.ts';
import { dryRunOf, type RunCommand } from '../command-context.ts';
import { EXIT_OK } from '../exit-code.ts';
import { recordAt, textAt } from '../output/json-field.ts';
import { named } from '../output/named.ts';
import { waitInForce } from './wait-in-force.ts';

/** `policy protect` and `policy monitor`. */
export const protectPolicy: RunCommand = async (...given) => await setMode('protect', ...given);
export const monitorPolicy: RunCommand = async (...given) => await setMode('monitor', ...given);

async function setMode(
  mode: PolicyMode,
  ...[context, [operand = ''], options]: Parameters<RunCommand>
): ReturnType<RunCommand> {
  const { terminal, connect } = context;
  const dryRun = dryRunOf(options);
  const name = policyName(operand);
  const connection = await connect({ dryRun: dryRun === 'server' });
  const place = { namespace: connection.namespace, name };
  const title = named('WorkloadPolicy', place);
  const current = await getObject(connection.client, POLICIES, place);
  if (textAt(current, 'spec', 'mode') === mode) {
    terminal.write(`${title} is already in "${mode}" mode.\n`);
    await waitInForce(context, connection, place, options);
    return EXIT_OK;
  }
  if (dryRun !== 'client') {
    await updateObject(connection, POLICIES, place, (policy) =>
      textAt(policy, 'spec', 'mode') === mode
        ? undefined
        : { ...policy, spec: { ...recordAt(policy, 'spec'), mode } },
    );
  }
  terminal.write(
    dryRun === 'none'
      ? `Successfully set ${title} to "${mode}" mode.\n`
      : `Would set ${title} to "${mode}" mode.\n`,
  );
  if (dryRun === 'none') await waitInForce(context, connection, place, options);
  return EXIT_OK;
}
