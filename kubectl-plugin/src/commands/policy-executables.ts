import type { RulesByContainer } from '@runtime-enforcer/api/container-rules';
import { type ExecutablePath, parseExecutablePath } from '@runtime-enforcer/api/executable-path';
import { quote } from '@runtime-enforcer/api/field-error';
import { MAX_CONTAINERS, MAX_PATHS_PER_CONTAINER } from '@runtime-enforcer/api/limits';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import {
  allowPaths,
  type ChangedRules,
  denyPaths,
  type RulesRefusal,
} from '@runtime-enforcer/api/rule-changes';
import type { ViolationReason } from '@runtime-enforcer/api/violation';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { getObject, POLICIES, policyOf, updateObject } from '../cluster/objects.ts';
import { policyName } from '../cluster/resource-names.ts';
import { type CommandContext, type CommandOptions, dryRunOf, type RunCommand } from '../command-context.ts';
import { executableArgument } from '../executable-argument.ts';
import { EXIT_OK, type ExitCode } from '../exit-code.ts';
import { recordAt } from '../output/json-field.ts';
import { named } from '../output/named.ts';
import { PluginError, UsageError } from '../plugin-error.ts';
import { waitInForce } from './wait-in-force.ts';

/** Violations that a longer list can end. */
const LISTABLE: ReadonlySet<ViolationReason> = new Set(['Unlisted', 'UnlistedContainer', 'NoPolicy']);

/** Paths by container. */
type Request = ReadonlyMap<string, readonly ExecutablePath[]>;
type Change = (rules: RulesByContainer, container: string, paths: readonly ExecutablePath[]) => ChangedRules;

/** `policy allow`: appends paths to a container's list. */
export const allowExecutables: RunCommand = async (context, operands, options) => {
  const missing = options.flag('add-container') ? 'add' : 'refuse';
  const change: Change = (rules, container, paths) => allowPaths(rules, container, paths, missing);
  return await changeExecutables(context, operands, options, { verb: 'allow', change });
};

/** `policy deny`: takes paths from a container's list. */
export const denyExecutables: RunCommand = async (context, operands, options) =>
  await changeExecutables(context, operands, options, { verb: 'deny', change: denyPaths });

async function changeExecutables(
  context: CommandContext,
  [operand = '', container, ...paths]: readonly string[],
  options: CommandOptions,
  { verb, change }: { readonly verb: 'allow' | 'deny'; readonly change: Change },
): Promise<ExitCode> {
  const { terminal, connect } = context;
  const dryRun = dryRunOf(options);
  const name = policyName(operand);
  const fromViolations = options.flag('from-violations');
  const given = fromViolations ? undefined : readPaths(container, paths, verb);
  if (fromViolations && paths.length > 0) {
    throw new UsageError('give paths or --from-violations, not both');
  }
  const connection = await connect({ dryRun: dryRun === 'server' });
  const place = { namespace: connection.namespace, name };
  const title = named('WorkloadPolicy', place);

  /** The change to one state of the policy; undefined when nothing is to be done. */
  const changed = (object: KubeObject): { lists: Request; object: KubeObject } | undefined => {
    const policy = policyOf(object);
    const request = given ?? violatingPaths(policy, container);
    let rules = policy.spec.rulesByContainer;
    const lists = new Map<string, readonly ExecutablePath[]>();
    let spec = recordAt(object, 'spec');
    for (const [containerName, wanted] of request) {
      const result = change(rules, containerName, wanted);
      if (!result.ok) throw refusalError(result.refusal, name, containerName);
      rules = result.rules;
      if (result.changed.length === 0) continue;
      const allowed = rules.get(containerName)?.executables.allowed ?? [];
      lists.set(containerName, allowed);
      spec = withList(spec, containerName, allowed);
    }
    return lists.size === 0 ? undefined : { lists, object: { ...object, spec } };
  };

  const current = await getObject(connection.client, POLICIES, place);
  const plan = changed(current);
  if (plan === undefined) {
    terminal.write(`No changes required for ${title}.\n`);
    await waitInForce(context, connection, place, options);
    return EXIT_OK;
  }
  if (dryRun !== 'client') {
    await updateObject(connection, POLICIES, place, (object) => changed(object)?.object);
  }
  if (dryRun === 'none') {
    terminal.write(`Successfully updated executables for ${title}.\n`);
    await waitInForce(context, connection, place, options);
    return EXIT_OK;
  }
  terminal.write(`Would ${verb} executables for ${title}.\n`);
  for (const [containerName, allowed] of plan.lists) {
    terminal.write(
      `${containerName}: ${allowed.length === 0 ? '(nothing is allowed)' : allowed.join(', ')}\n`,
    );
  }
  return EXIT_OK;
}

function readPaths(container: string | undefined, paths: readonly string[], verb: string): Request {
  if (container === undefined || paths.length === 0) {
    throw new UsageError(
      `policy ${verb} needs a policy, a container and at least one executable`,
      `kubectl runtime-enforcer policy ${verb} POLICY CONTAINER EXECUTABLE...`,
    );
  }
  return new Map([[container, paths.map(executableArgument)]]);
}

/** What violated the policy and can be listed; the rest no list can allow. */
function violatingPaths({ status }: WorkloadPolicy, only: string | undefined): Request {
  const request = new Map<string, ExecutablePath[]>();
  for (const { containerName, executablePath, reason } of status?.violations ?? []) {
    if (only !== undefined && only !== containerName) continue;
    if (reason !== undefined && !LISTABLE.has(reason)) continue;
    const path = parseExecutablePath(executablePath);
    if (path.ok) request.set(containerName, [...(request.get(containerName) ?? []), path.value]);
  }
  return request;
}

function withList(
  spec: Readonly<Record<string, unknown>>,
  container: string,
  allowed: readonly ExecutablePath[],
): Record<string, unknown> {
  const rules = recordAt(spec, 'rulesByContainer');
  const executables = { ...recordAt(rules, container, 'executables'), allowed };
  return {
    ...spec,
    rulesByContainer: { ...rules, [container]: { ...recordAt(rules, container), executables } },
  };
}

function refusalError(refusal: RulesRefusal, policy: string, container: string): PluginError {
  switch (refusal) {
    case 'noRules':
      return new PluginError(
        `policy ${quote(policy)} has no rules for containers`,
        'add the container with: policy allow --add-container',
      );
    case 'unknownContainer':
      return new PluginError(
        `container ${quote(container)} not found in policy`,
        'check its name, or add it with: policy allow --add-container',
      );
    case 'tooManyContainers':
      return new PluginError(
        `policy ${quote(policy)} names ${MAX_CONTAINERS} containers, and cannot hold more`,
      );
    case 'tooManyPaths':
      return new PluginError(
        `container ${escapeUnprintable(quote(container))} would have more than ${MAX_PATHS_PER_CONTAINER} paths`,
      );
  }
}
