import { quote } from '@runtime-enforcer/api/field-error';
import { PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import {
  getObject,
  listObjects,
  type NamedResource,
  POLICIES,
  PROPOSALS,
  typeName,
} from '../cluster/objects.ts';
import { policyName, proposalName } from '../cluster/resource-names.ts';
import type { RunCommand } from '../command-context.ts';
import { formatAge } from '../duration.ts';
import { EXIT_OK } from '../exit-code.ts';
import { labelsOf, listAt, numberAt, recordAt, textAt } from '../output/json-field.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printObjects } from '../output/print.ts';
import type { Column } from '../output/table.ts';
import { UsageError } from '../plugin-error.ts';

/** `policy list` and `proposal list`. */
export const listPolicies: RunCommand = async (...given) => await list(POLICIES, policyColumns, ...given);
export const listProposals: RunCommand = async (...given) => await list(PROPOSALS, proposalColumns, ...given);

type Columns = (now: Date) => readonly Column<KubeObject>[];

async function list(
  resource: NamedResource,
  columns: Columns,
  ...[{ terminal, connect, now }, operands, options]: Parameters<RunCommand>
): ReturnType<RunCommand> {
  const format = parseOutputFormat(options.text('output'));
  const names = operands.map(resource === POLICIES ? policyName : proposalName);
  const everywhere = options.flag('all-namespaces');
  if (everywhere && names.length > 0) throw new UsageError('names and --all-namespaces do not go together');
  const { client, namespace } = await connect();
  const selector = options.text('selector');
  const objects =
    names.length > 0
      ? await Promise.all(names.map(async (name) => await getObject(client, resource, { namespace, name })))
      : await listObjects(client, resource, everywhere ? undefined : namespace, selector);
  const place: readonly Column<KubeObject>[] = everywhere
    ? [{ title: 'NAMESPACE', cell: (object) => object.metadata.namespace ?? '' }]
    : [];
  printObjects(terminal, format, {
    objects: objects.filter(isKubeObject),
    single: names.length === 1,
    type: typeName(resource),
    table: {
      rows: objects,
      columns: [...place, ...columns(now())],
      headers: !options.flag('no-headers'),
      empty: everywhere ? 'No resources found' : `No resources found in namespace ${quote(namespace)}.`,
    },
  });
  return EXIT_OK;
}

function policyColumns(now: Date): readonly Column<KubeObject>[] {
  return [
    nameColumn,
    { title: 'MODE', cell: (policy) => textAt(policy, 'spec', 'mode') },
    { title: 'STATUS', cell: (policy) => textAt(policy, 'status', 'phase') },
    {
      title: 'NODES',
      cell: (policy) => {
        const total = numberAt(policy, 'status', 'totalNodes');
        const ready = numberAt(policy, 'status', 'successfulNodes') ?? 0;
        return total === undefined ? '' : `${ready}/${total}`;
      },
    },
    { title: 'ACTIVE VIOLATIONS', cell: (policy) => textAt(policy, 'status', 'activeViolationCount') },
    { title: 'TOTAL VIOLATIONS', cell: (policy) => textAt(policy, 'status', 'violationCount') },
    { title: 'CONTAINERS', wide: true, cell: (policy) => containerNames(policy).join(',') },
    { title: 'PATHS', wide: true, cell: (policy) => String(pathCount(policy)) },
    ageColumn(now),
  ];
}

function proposalColumns(now: Date): readonly Column<KubeObject>[] {
  return [
    nameColumn,
    {
      title: 'WORKLOAD',
      cell: (proposal) => {
        const [owner] = listAt(proposal, 'metadata', 'ownerReferences');
        const kind = textAt(owner, 'kind');
        return kind === '' ? '' : `${kind}/${textAt(owner, 'name')}`;
      },
    },
    { title: 'CONTAINERS', cell: (proposal) => containerNames(proposal).join(',') },
    { title: 'PATHS', cell: (proposal) => String(pathCount(proposal)) },
    { title: 'PROMOTE', cell: (proposal) => labelsOf(proposal).get(PROMOTE_LABEL) ?? '' },
    {
      title: 'FULL',
      wide: true,
      cell: (proposal) => {
        const conditions = listAt(proposal, 'status', 'conditions');
        return textAt(
          conditions.find((each) => textAt(each, 'type') === 'Full'),
          'status',
        );
      },
    },
    ageColumn(now),
  ];
}

const nameColumn: Column<KubeObject> = { title: 'NAME', cell: ({ metadata }) => metadata.name };

function ageColumn(now: Date): Column<KubeObject> {
  return {
    title: 'AGE',
    cell: (object) => {
      const created = Date.parse(textAt(object, 'metadata', 'creationTimestamp'));
      return Number.isNaN(created) ? '<unknown>' : formatAge(now.getTime() - created);
    },
  };
}

function containerNames(object: KubeObject): string[] {
  return Object.keys(recordAt(object, 'spec', 'rulesByContainer')).toSorted();
}

function pathCount(object: KubeObject): number {
  return Object.values(recordAt(object, 'spec', 'rulesByContainer'))
    .map((rules) => listAt(rules, 'executables', 'allowed').length)
    .reduce((sum, count) => sum + count, 0);
}
