import { printProgress } from '../vm/progress.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { figureLine, judge, type Measured } from './figure.ts';

const USAGE_EXIT_CODE = 2;
/** What is measured; other files do not change a figure. */
const MEASURED_FOLDERS = [
  ...[
    'api',
    'agent',
    'bpf',
    'certs',
    'controller',
    'kube',
    'kubectl-plugin',
    'proto',
    'rpc',
    'telemetry',
    'test',
  ],
  'package-lock.json',
];

/** Measures one thing and reports each figure as soon as it is known. Rejects if it cannot be measured. */
type Bench = (report: (measured: Measured) => void) => Promise<void>;

/** Each lives in a module of its own, imported only when it runs. */
const BENCHES: readonly {
  readonly name: string;
  /** Runs with that one too. */
  readonly partOf?: string;
  readonly load: () => Promise<Bench>;
}[] = [
  { name: 'exec', load: async () => (await import('./exec.ts')).benchExec },
  { name: 'scale', load: async () => (await import('./scale.ts')).benchScale },
  { name: 'load', load: async () => (await import('./load.ts')).benchLoad },
  { name: 'memory', load: async () => (await import('./memory.ts')).benchMemory },
  { name: 'nri', load: async () => (await import('./nri.ts')).benchNri },
  { name: 'agent', load: async () => (await import('./agent.ts')).benchAgent },
  { name: 'journal', partOf: 'agent', load: async () => (await import('./journal.ts')).benchJournal },
  { name: 'controller', load: async () => (await import('./controller.ts')).benchController },
  { name: 'rss', load: async () => (await import('./rss.ts')).benchRss },
  { name: 'plugin', load: async () => (await import('./plugin.ts')).benchPlugin },
];

/** Runs benches, figures on standard output. Returns the exit code: 1 where a bar is missed or nothing was measured. */
async function main(names: readonly string[]): Promise<number> {
  const known = BENCHES.map(({ name }) => name);
  const unknown = names.filter((name) => name !== 'all' && !known.includes(name));
  if (names.length === 0 || unknown.length > 0) {
    const problem = unknown.length > 0 ? `no such bench: ${unknown.join(', ')}; ` : '';
    console.error(
      `${problem}usage: npm run bench -- NAME..., where NAME is all or one of ${known.join(', ')}`,
    );
    return USAGE_EXIT_CODE;
  }
  const commit = await currentCommit();
  const problems: string[] = [];
  for (const { name, partOf = name, load } of BENCHES) {
    if (!['all', name, partOf].some((asked) => names.includes(asked))) continue;
    printProgress(`bench ${name}`);
    let count = 0;
    const report = (measured: Measured): void => {
      count++;
      console.log(figureLine({ ...measured, commit }));
      problems.push(...missedBar(measured));
    };
    try {
      const bench = await load();
      await bench(report);
      if (count === 0) problems.push(`bench ${name} measured nothing`);
    } catch (error) {
      problems.push(
        `bench ${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
    }
  }
  for (const problem of problems) console.error(`✗ ${problem}`);
  return problems.length > 0 ? 1 : 0;
}

function missedBar({ figure, value, unit }: Measured): string[] {
  const judgement = judge(figure, value);
  if (judgement === undefined) return [];
  const { bar, meetsMust, meetsGoal } = judgement;
  if (!meetsMust) return [`${figure} is ${value} ${unit}; it must be ${bar.bound} ${bar.must}`];
  if (!meetsGoal) printProgress(`${figure} does not reach its goal of ${bar.bound} ${bar.goal ?? bar.must}`);
  return [];
}

async function currentCommit(): Promise<string> {
  const inRepository = { cwd: REPOSITORY };
  const id = await runHostCommand(['git', 'rev-parse', '--short=12', 'HEAD'], inRepository);
  const status = ['git', 'status', '--porcelain', '--', ...MEASURED_FOLDERS] as const;
  const changed = await runHostCommand([...status], inRepository);
  return `${id.trim()}${changed.trim() === '' ? '' : '+'}`;
}

process.exitCode = await main(process.argv.slice(2));
