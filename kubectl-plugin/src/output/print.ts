import { escapeInQuotes, escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import { yamlText } from '@runtime-enforcer/api/yaml-text';
import { type KubeObject, withoutManagedFields } from '@runtime-enforcer/kube/kube-object';
import type { Terminal } from '../terminal.ts';
import { fillJsonPath } from './json-path.ts';
import type { OutputFormat } from './output-format.ts';
import { type Column, formatTable } from './table.ts';

export interface PrintedTable<Row> {
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly headers: boolean;
  /** To standard error, where there are no rows. */
  readonly empty: string;
}

/** Prints data as JSON, YAML or through a template; nothing in it can act on the terminal. */
export function printData(
  terminal: Terminal,
  format: Exclude<OutputFormat, { kind: 'table' | 'name' }>,
  data: Readonly<Record<string, unknown>> | readonly unknown[],
): void {
  switch (format.kind) {
    case 'json':
      terminal.write(`${escapeInQuotes(JSON.stringify(data, null, 2))}\n`);
      return;
    case 'yaml': {
      const text = Array.isArray(data)
        ? yamlText({ items: data as readonly unknown[] })
        : yamlText(data as Readonly<Record<string, unknown>>);
      terminal.write(escapeInQuotes(text));
      return;
    }
    case 'jsonpath':
      terminal.write(fillJsonPath(format.template, data, escapeUnprintable));
  }
}

/** Prints objects of the API as kubectl does: a list as a `List`, one object by itself. */
export function printObjects<Row>(
  terminal: Terminal,
  format: OutputFormat,
  given: {
    readonly objects: readonly KubeObject[];
    readonly single: boolean;
    readonly type: string;
    readonly table: PrintedTable<Row>;
  },
): void {
  const { objects, single, type, table } = given;
  switch (format.kind) {
    case 'table':
      printTable(terminal, format.wide, table);
      return;
    case 'name':
      for (const { metadata } of objects) terminal.write(`${type}/${escapeUnprintable(metadata.name)}\n`);
      return;
    case 'json':
    case 'yaml':
    case 'jsonpath': {
      const items = objects.map(withoutManagedFields);
      const [first] = items;
      const data =
        single && first !== undefined
          ? first
          : { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '' }, items };
      printData(terminal, format, data);
    }
  }
}

export function printTable<Row>(terminal: Terminal, wide: boolean, table: PrintedTable<Row>): void {
  const { rows, columns, headers, empty } = table;
  if (rows.length === 0) terminal.note(empty);
  else terminal.write(formatTable(rows, columns, { wide, headers }));
}
