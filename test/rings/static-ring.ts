import { glob } from 'node:fs/promises';
import { relative } from 'node:path';
import { runHostCommand } from '../vm/host-command.ts';
import { REPOSITORY } from '../vm/repository.ts';
import type { RingReport, RingResult } from './report.ts';
import { runTest } from './run-test.ts';

interface Check {
  title: string;
  argv: readonly [string, ...string[]];
  /** What repairs it, where a command can. */
  remedy?: string;
}

const C_SOURCES = '{bpf,agent/native/{src,test},test/guest-programs}/*.{c,cc,h}';
const SHELL_SCRIPTS = '{.ci/run,test/**/*.sh}';
/** A program that writes committed files; with `--check` it fails when they are not what it would write. */
const GENERATORS = '{agent,api,rpc,test}/**/generate.ts';
const LEFT_OUT = ['node_modules', 'build', 'dist', 'coverage'];

/** What can be said about the code without running it: one test each. */
export async function runStaticRing(report: RingReport): Promise<RingResult> {
  for (const check of await checks()) await runCheck(check, report);
  return report.result();
}

async function checks(): Promise<Check[]> {
  const generators = await files(GENERATORS);
  return [
    { title: 'types (tsc)', argv: ['tsc', '--noEmit'] },
    { title: 'lint (eslint)', argv: ['eslint', '--max-warnings', '0', '.'] },
    { title: 'formatting (prettier)', argv: ['prettier', '--check', '.'], remedy: 'npm run format' },
    {
      title: 'formatting of C and C++ (clang-format)',
      argv: ['clang-format', '--dry-run', '-Werror', ...(await files(C_SOURCES))],
      remedy: 'npm run format',
    },
    {
      title: 'shell scripts parse (bash)',
      argv: [
        'bash',
        '-c',
        'set -e; for script; do bash -n "$script"; done',
        'bash',
        ...(await files(SHELL_SCRIPTS)),
      ],
    },
    ...generators.map((generator): Check => ({
      title: `generated code is current (${generator})`,
      argv: ['node', generator, '--check'],
      remedy: `node ${generator}`,
    })),
  ];
}

async function files(pattern: string): Promise<string[]> {
  const found: string[] = [];
  const exclude = (path: string): boolean => LEFT_OUT.some((name) => path.split('/').includes(name));
  for await (const path of glob(pattern, { cwd: REPOSITORY, exclude })) found.push(relative('', path));
  return found.sort();
}

async function runCheck({ title, argv, remedy }: Check, report: RingReport): Promise<void> {
  const check = async (): Promise<unknown> => await runHostCommand(argv, { cwd: REPOSITORY });
  await runTest(report, title, check, remedy && `repair it with: ${remedy}`);
}
