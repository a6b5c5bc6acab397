import { setTimeout as sleep } from 'node:timers/promises';
import { quote } from '@runtime-enforcer/api/field-error';
import { reflector } from '@runtime-enforcer/kube/reflector';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { Connection } from '../cluster/connection.ts';
import { getObject, isMissingKind, listObjects, POLICIES, policyOf } from '../cluster/objects.ts';
import { policyName } from '../cluster/resource-names.ts';
import type { CommandContext, CommandOptions, RunCommand } from '../command-context.ts';
import { parseDuration } from '../duration.ts';
import { reportError } from '../error-text.ts';
import { EXIT_OK, type ExitCode } from '../exit-code.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData, printTable } from '../output/print.ts';
import { formatTable } from '../output/table.ts';
import { UsageError } from '../plugin-error.ts';
import { violationColumns, type ViolationRow } from './violation-table.ts';

interface Wanted {
  readonly policy: string | undefined;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** Only what was seen after this moment, in milliseconds since 1970. */
  readonly sinceMs: number;
  readonly acknowledged: boolean;
}

/** `violations`: what the policies' status tells, newest first; with `-w`, what comes new. */
export const listViolations: RunCommand = async (context, [operand], options) => {
  const { terminal, now } = context;
  const format = parseOutputFormat(options.text('output'), ['table', 'wide', 'json', 'yaml', 'jsonpath']);
  const named = options.text('policy') ?? operand;
  const policy = named === undefined ? undefined : policyName(named);
  const everywhere = options.flag('all-namespaces');
  if (everywhere && policy !== undefined)
    throw new UsageError('--policy and --all-namespaces do not go together');
  const since = options.text('since');
  const sinceMs = since === undefined ? 0 : now().getTime() - parseDuration(since, '--since');
  const watching = options.flag('watch');
  if (watching && format.kind !== 'table') throw new UsageError('--watch prints a table only');
  const connection = await context.connect();
  const namespace = everywhere ? undefined : connection.namespace;
  const wanted: Wanted = { policy, namespace, sinceMs, acknowledged: options.flag('acknowledged') };
  const rows = (await policiesOf(connection, wanted)).flatMap((object) =>
    rowsOf(object, wanted, terminal.note),
  );
  rows.sort(newestFirst);
  if (format.kind === 'json' || format.kind === 'yaml' || format.kind === 'jsonpath') {
    printData(terminal, format, rows.map(plainRow));
    return EXIT_OK;
  }
  const columns = violationColumns(now(), {
    places: true,
    namespaces: everywhere,
    reasons: wanted.acknowledged,
  });
  const wide = format.kind === 'table' && format.wide;
  const where = namespace === undefined ? '' : ` in namespace ${quote(namespace)}`;
  printTable(terminal, wide, {
    rows,
    columns,
    headers: !options.flag('no-headers'),
    empty: `No violations found${where}.`,
  });
  return watching
    ? await watchViolations(context, connection, { ...wanted, printed: rows }, options)
    : EXIT_OK;
};

async function policiesOf({ client }: Connection, wanted: Wanted): Promise<readonly KubeObject[]> {
  const { policy: name, namespace } = wanted;
  if (name === undefined || namespace === undefined) return await listObjects(client, POLICIES, namespace);
  return [await getObject(client, POLICIES, { namespace, name })];
}

function rowsOf(object: KubeObject, wanted: Wanted, note: (line: string) => void): ViolationRow[] {
  try {
    const { metadata, status } = policyOf(object);
    const place = { namespace: metadata.namespace, policy: metadata.name };
    const rows: readonly ViolationRow[] = wanted.acknowledged
      ? (status?.acknowledgedViolations ?? []).map(({ violation, reason }) => ({
          ...place,
          record: violation,
          reason,
        }))
      : (status?.violations ?? []).map((record) => ({ ...place, record }));
    return rows.filter(({ record }) => Date.parse(record.lastObservedTimestamp) >= wanted.sinceMs);
  } catch (error) {
    // One unreadable policy must not hide the violations of all others.
    note(reportError(error).text);
    return [];
  }
}

/** Prints a line for each violation that is new or has been seen again, until the process is told to end. */
async function watchViolations(
  { terminal, now, signal }: CommandContext,
  { client }: Connection,
  wanted: Wanted & { readonly printed: readonly ViolationRow[] },
  options: CommandOptions,
): Promise<ExitCode> {
  const seen = new Map(wanted.printed.map((row) => [rowKey(row), row.record.occurrences]));
  const shown = { places: true, namespaces: wanted.namespace === undefined, reasons: wanted.acknowledged };
  const { policy } = wanted;
  const tell = (object: KubeObject): void => {
    const rows = rowsOf(object, wanted, terminal.note).filter((row) => {
      const key = rowKey(row);
      const isNew = seen.get(key) !== row.record.occurrences;
      seen.set(key, row.record.occurrences);
      return isNew;
    });
    if (rows.length === 0) return;
    const wide = options.text('output') === 'wide';
    terminal.write(
      formatTable(rows.toSorted(newestFirst).reverse(), violationColumns(now(), shown), {
        wide,
        headers: false,
      }),
    );
  };
  const follower = reflector({
    client,
    resource: POLICIES,
    store: objectStore<KubeObject>({ transform: (object) => object }),
    ...(wanted.namespace !== undefined && { namespace: wanted.namespace }),
    ...(policy !== undefined && { fieldSelector: `metadata.name=${policy}` }),
    onChange: (change) => {
      if (change.type !== 'deleted') tell(change.value);
    },
    onTrouble: (error, waitMs) => {
      const again = waitMs > 0 ? ` (trying again in ${Math.ceil(waitMs / 1_000)} s)` : '';
      terminal.note(`${reportError(error).text}${isMissingKind(error) ? '' : again}`);
    },
  });
  follower.start();
  try {
    await aborted(signal);
  } finally {
    await follower.stop();
  }
  return EXIT_OK;
}

async function aborted(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await sleep(2 ** 31 - 1, undefined, { signal }).catch(() => undefined);
}

function rowKey({ namespace, policy, record }: ViolationRow): string {
  return JSON.stringify([namespace, policy, record.id]);
}

function newestFirst({ record: one }: ViolationRow, { record: other }: ViolationRow): number {
  return Date.parse(other.lastObservedTimestamp) - Date.parse(one.lastObservedTimestamp) || other.id - one.id;
}

function plainRow({ namespace, policy, record, reason }: ViolationRow): Readonly<Record<string, unknown>> {
  return { namespace, policy, ...record, ...(reason !== undefined && { acknowledgedReason: reason }) };
}
