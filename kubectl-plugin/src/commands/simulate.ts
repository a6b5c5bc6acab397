import { quote } from '@runtime-enforcer/api/field-error';
import { MAX_PATH_TEXT_CHARACTERS } from '@runtime-enforcer/api/executable-path';
import type { Decision } from '@runtime-enforcer/api/matcher';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import {
  execsOfProposal,
  execsOfViolations,
  type RecordedExec,
  simulate,
  type SimulatedExec,
} from '@runtime-enforcer/api/simulation';
import { VIOLATION_REASONS } from '@runtime-enforcer/api/violation';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { Connection } from '../cluster/connection.ts';
import { getPolicy, getProposal } from '../cluster/objects.ts';
import { policyName } from '../cluster/resource-names.ts';
import type { RunCommand } from '../command-context.ts';
import { EXIT_FINDING, EXIT_OK } from '../exit-code.ts';
import { readInput } from '../input-file.ts';
import { numberAt, textAt } from '../output/json-field.ts';
import { counted } from '../output/named.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData } from '../output/print.ts';
import { formatTable } from '../output/table.ts';
import { PluginError, UsageError } from '../plugin-error.ts';
import { policyFromFile } from './compare.ts';

/** `simulate POLICY`: what the policy would have made of recorded execs. Exit code 3 where some would violate it. */
export const simulatePolicy: RunCommand = async ({ terminal, connect }, [operand], options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml', 'jsonpath']);
  const file = options.text('filename');
  if ((operand === undefined) === (file === undefined)) {
    throw new UsageError('simulate needs a policy or --filename FILE, and not both');
  }
  const recorded = options.text('recorded') ?? 'violations';
  const named = operand === undefined ? undefined : policyName(operand);
  const isOffline = file !== undefined && recorded !== 'violations' && recorded !== 'proposal';
  const connection = isOffline ? undefined : await connect();
  const policy =
    file !== undefined
      ? await policyFromFile(file)
      : await getPolicy(connection ?? (await connect()), named ?? '');
  const execs = await recordedExecs(connection, recorded, policy);
  const mode = options.text('mode') ?? policy.spec.mode;
  if (mode !== 'monitor' && mode !== 'protect') {
    throw new UsageError(`invalid mode ${quote(mode)}, expected "monitor" or "protect"`);
  }
  const simulation = simulate({ ...policy.spec, mode }, execs);
  const { violating, passing } = simulation;
  const exitCode = violating.execs > 0 ? EXIT_FINDING : EXIT_OK;
  if (format.kind === 'json' || format.kind === 'yaml' || format.kind === 'jsonpath') {
    printData(terminal, format, { policy: policy.metadata.name, mode, ...simulation });
    return exitCode;
  }
  const { red, yellow } = terminal.colors;
  if (simulation.execs.length > 0) {
    const table = formatTable<SimulatedExec>(
      simulation.execs,
      [
        { title: 'CONTAINER', cell: ({ containerName }) => containerName },
        { title: 'COUNT', cell: ({ occurrences }) => String(occurrences) },
        {
          title: 'OUTCOME',
          cell: ({ decision }) => outcomeText(decision),
          paint: (text, { decision }) => {
            if (decision.outcome !== 'violation') return text;
            return decision.action === 'protect' ? red(text) : yellow(text);
          },
        },
        { title: 'EXECUTABLE', cell: ({ executablePath }) => executablePath },
      ],
      { headers: !options.flag('no-headers') },
    );
    terminal.write(table);
  }
  const verb = mode === 'protect' ? 'denied' : 'reported';
  terminal.write(
    `${counted(violating.execs, 'executable')} (${counted(violating.occurrences, 'exec')}) would be ${verb}, ` +
      `${counted(passing.execs, 'executable')} (${counted(passing.occurrences, 'exec')}) would pass.\n`,
  );
  return exitCode;
};

async function recordedExecs(
  connection: Connection | undefined,
  source: string,
  policy: WorkloadPolicy,
): Promise<readonly RecordedExec[]> {
  const { name } = policy.metadata;
  if (connection === undefined || (source !== 'violations' && source !== 'proposal')) {
    return readRecording(source, await readInput(source));
  }
  if (source === 'proposal') return execsOfProposal(await getProposal(connection, name));
  // A policy of a file is tried on what the policy of its name in the cluster has met.
  const { status } = policy.status === undefined ? await getPolicy(connection, name) : policy;
  return execsOfViolations([
    ...(status?.violations ?? []),
    ...(status?.acknowledgedViolations ?? []).map(({ violation }) => violation),
  ]);
}

/**
 * Execs of a file with one JSON object a line, as the agent writes its violations: `containerName`, `executablePath`,
 * and where they are known `occurrences` and `reason`. Lines about other things are passed over.
 */
export function readRecording(file: string, content: Buffer): readonly RecordedExec[] {
  const execs: RecordedExec[] = [];
  for (const [index, line] of content.toString().split('\n').entries()) {
    if (line.trim() === '') continue;
    let json: unknown;
    try {
      json = JSON.parse(line);
    } catch (cause) {
      throw new PluginError(
        `${escapeUnprintable(file)}:${index + 1}: the line is not JSON; expected one object a line`,
        'give a file as the agent writes its violations, or "violations" or "proposal"',
        { cause },
      );
    }
    const containerName = textAt(json, 'containerName');
    const executablePath = textAt(json, 'executablePath');
    if (containerName === '' || executablePath === '' || executablePath.length > 2 * MAX_PATH_TEXT_CHARACTERS)
      continue;
    const occurrences = numberAt(json, 'occurrences') ?? 1;
    const reason = VIOLATION_REASONS.find((known) => known === textAt(json, 'reason'));
    execs.push({
      containerName,
      executablePath,
      occurrences: Number.isSafeInteger(occurrences) && occurrences > 0 ? occurrences : 1,
      ...(reason !== undefined && { reason }),
    });
  }
  return execs;
}

function outcomeText(decision: Decision): string {
  switch (decision.outcome) {
    case 'allowed':
      return 'allowed';
    case 'unrestricted':
      return 'unrestricted';
    case 'unchecked':
      return 'unchecked';
    case 'violation':
      return `${decision.action === 'protect' ? 'denied' : 'reported'} (${decision.reason})`;
  }
}
