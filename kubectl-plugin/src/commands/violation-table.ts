import type { ViolationRecord } from '@runtime-enforcer/api/violation';
import { formatAge } from '../duration.ts';
import type { Column } from '../output/table.ts';

export interface ViolationRow {
  readonly namespace: string;
  readonly policy: string;
  readonly record: ViolationRecord;
  /** Why somebody has filed it away. */
  readonly reason?: string;
}

/** Columns of a list of violations; the executable, which can be long, is the last of the narrow form. */
export function violationColumns(
  now: Date,
  shown: { readonly places: boolean; readonly namespaces?: boolean; readonly reasons?: boolean },
): readonly Column<ViolationRow>[] {
  const age = (time: string) => formatAge(now.getTime() - Date.parse(time));
  const places: readonly Column<ViolationRow>[] = [
    ...(shown.namespaces === true
      ? [{ title: 'NAMESPACE', cell: (row: ViolationRow) => row.namespace }]
      : []),
    { title: 'POLICY', cell: ({ policy }) => policy },
  ];
  return [
    ...(shown.places ? places : []),
    { title: 'ID', cell: ({ record }) => String(record.id) },
    { title: 'LAST SEEN', cell: ({ record }) => age(record.lastObservedTimestamp) },
    { title: 'FIRST SEEN', wide: true, cell: ({ record }) => age(record.firstObservedTimestamp) },
    { title: 'COUNT', cell: ({ record }) => String(record.occurrences) },
    { title: 'ACTION', cell: ({ record }) => record.action },
    { title: 'POD', cell: ({ record }) => record.podName },
    { title: 'CONTAINER', cell: ({ record }) => record.containerName },
    { title: 'WHY', wide: true, cell: ({ record }) => record.reason ?? '' },
    { title: 'ORIGIN', wide: true, cell: ({ record }) => record.origin ?? '' },
    { title: 'PARENT', wide: true, cell: ({ record }) => record.parentName ?? '' },
    { title: 'NODE', wide: true, cell: ({ record }) => record.nodeName },
    ...(shown.reasons === true ? [{ title: 'REASON', cell: ({ reason = '' }: ViolationRow) => reason }] : []),
    { title: 'EXECUTABLE', cell: ({ record }) => record.executablePath },
  ];
}
