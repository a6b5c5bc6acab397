import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import {
  type Concern,
  type ReviewedPath,
  reviewProposal,
  WARNINGS,
} from '@runtime-enforcer/api/proposal-review';
import { getProposal } from '../cluster/objects.ts';
import { proposalName } from '../cluster/resource-names.ts';
import type { RunCommand } from '../command-context.ts';
import { formatAge } from '../duration.ts';
import { EXIT_FINDING, EXIT_OK } from '../exit-code.ts';
import { counted } from '../output/named.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData } from '../output/print.ts';
import { formatTable } from '../output/table.ts';

const CONCERN_TEXTS = {
  dangerous: 'dangerous',
  interactive: 'only from kubectl exec',
  writable: 'in a directory that all may write',
  once: 'seen once',
  oneNode: 'on one node only',
  noEvidence: 'no evidence',
} as const satisfies Record<Concern, string>;

/** `proposal review`: the evidence for each path, and what to look at before it is allowed. Exit code 3 on warnings. */
export const review: RunCommand = async ({ terminal, connect, now }, [operand = ''], options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'wide', 'json', 'yaml', 'jsonpath']);
  const name = proposalName(operand);
  const proposal = await getProposal(await connect(), name);
  const { paths, warnings, full } = reviewProposal(proposal);
  const exitCode = warnings > 0 ? EXIT_FINDING : EXIT_OK;
  if (format.kind === 'json' || format.kind === 'yaml' || format.kind === 'jsonpath') {
    printData(terminal, format, { proposal: name, full, warnings, paths });
    return exitCode;
  }
  const { yellow } = terminal.colors;
  const age = (time: string | undefined) =>
    time === undefined ? '' : formatAge(now().getTime() - Date.parse(time));
  const table = formatTable<ReviewedPath>(
    paths,
    [
      { title: 'CONTAINER', cell: ({ containerName }) => containerName },
      {
        title: 'COUNT',
        cell: ({ observation }) => (observation === undefined ? '' : String(observation.count)),
      },
      { title: 'FIRST SEEN', cell: ({ observation }) => age(observation?.firstSeen) },
      { title: 'LAST SEEN', cell: ({ observation }) => age(observation?.lastSeen) },
      { title: 'ORIGIN', cell: ({ observation }) => observation?.origins.join(',') ?? '' },
      { title: 'PODS', cell: ({ observation }) => String(observation?.pods.length ?? 0) },
      { title: 'POD NAMES', wide: true, cell: ({ observation }) => observation?.pods.join(',') ?? '' },
      { title: 'NODES', wide: true, cell: ({ observation }) => observation?.nodes.join(',') ?? '' },
      {
        title: 'LOOK AT',
        cell: ({ concerns }) => concerns.map((concern) => CONCERN_TEXTS[concern]).join(', ') || '-',
        paint: (text, { concerns }) => (concerns.some((each) => WARNINGS.has(each)) ? yellow(text) : text),
      },
      { title: 'EXECUTABLE', cell: ({ executablePath }) => executablePath },
    ],
    { wide: format.kind === 'table' && format.wide, headers: !options.flag('no-headers') },
  );
  terminal.write(table);
  if (full) terminal.note('Learning was full: the workload started more than the proposal could hold.');
  for (const { executablePath, danger } of paths) {
    if (danger === undefined) continue;
    terminal.note(`${escapeUnprintable(executablePath)} ${danger.why} (${danger.source})`);
  }
  if (warnings > 0) terminal.note(`${counted(warnings, 'path')} of ${paths.length} should be looked at.`);
  return exitCode;
};
