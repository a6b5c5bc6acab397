import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS, readCommand } from '@runtime-enforcer/agent/commands/command';
import { commandHelpText, helpText } from '@runtime-enforcer/agent/commands/help';
import { IMAGE_PROGRAMS } from '../../images/programs.ts';
import { describe, expect, it } from 'vitest';
import { REPOSITORY } from '../vm/repository.ts';

/** What is written for people to type or to read: where it stands, and whether as a line of a block or in a sentence. */
interface Written {
  readonly at: string;
  readonly text: string;
  readonly kind: 'line' | 'phrase';
}

const DOCUMENTS = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync('docs/**/*.md', { cwd: REPOSITORY }),
];
const WRITTEN = DOCUMENTS.flatMap((file) => writtenIn(file, read(file)));
const SOURCES = globSync('{test,agent,api,kube,rpc,telemetry,images}/**/*.{ts,sh}', {
  cwd: REPOSITORY,
  exclude: (path) => /(^|\/)(node_modules|build|dist)(\/|$)/.test(path),
});

const IMAGES = IMAGE_PROGRAMS.map(({ program }) => program.name);

function read(file: string): string {
  return readFileSync(join(REPOSITORY, file), 'utf8');
}

function writtenIn(file: string, text: string): Written[] {
  const blocks = Array.from(text.matchAll(/^```sh\n(.*?)^```/gms), ([, block = '']) => block);
  const lines = blocks.flatMap((block) => block.replaceAll('\\\n', ' ').split('\n')).map(withoutComment);
  const prose = text.replaceAll(/^```.*?^```/gms, '');
  const phrases = Array.from(prose.matchAll(/`([^`\n]+)`/g), ([, phrase = '']) => phrase);
  return [
    ...lines.filter((line) => line !== '').map((line): Written => ({ at: file, text: line, kind: 'line' })),
    ...phrases.map((phrase): Written => ({ at: file, text: phrase, kind: 'phrase' })),
  ];
}

function withoutComment(line: string): string {
  return line.replace(/(^|\s)#.*$/, '').trim();
}

/** The words of a command up to what the shell does with its output, without variables in front. */
function wordsOf(text: string): string[] {
  const words = Array.from(text.matchAll(/(?:[^\s']|'[^']*')+/g), ([word]) => word.replaceAll("'", ''));
  const end = words.findIndex((word) => /^(\||>|&&|;)/.test(word));
  const own = end < 0 ? words : words.slice(0, end);
  const start = own.findIndex((word) => !/^[A-Z_]+=/.test(word));
  return start < 0 ? [] : own.slice(start);
}

/** The arguments of every command of the agent: as it is started from a checkout, and by its name. */
function agentCommands(): { readonly written: Written; readonly args: readonly string[] }[] {
  return WRITTEN.flatMap((written) => {
    const [program = '', ...rest] = wordsOf(written.text);
    const byFile = program === 'node' && /^(\$agent|.*\/agent\.mjs)$/.test(rest[0] ?? '');
    const args = byFile ? rest.slice(1) : program === 'agent' ? rest : undefined;
    if (args === undefined || args.length === 0 || args[0] === 'COMMAND') return [];
    // Of words that may be chosen, as in `monitor|off`, one will do.
    return [{ written, args: args.map((word) => word.replace(/\|.*/, '')) }];
  });
}

describe('what the documents tell to type', () => {
  it('names scripts of npm that there are, and benches and rings', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const benches = Array.from(read('test/bench/main.ts').matchAll(/name: '([a-z]+)'/g), ([, name]) => name);
    const used = WRITTEN.flatMap(({ at, text }) => {
      const [program, verb, ...rest] = wordsOf(text);
      if (program !== 'npm' || verb === undefined || ['ci', 'install', 'view'].includes(verb)) return [];
      return [{ at, script: verb === 'run' ? rest[0] : verb, args: rest.slice(verb === 'run' ? 1 : 0) }];
    });
    expect(used.length).toBeGreaterThan(10);
    for (const { at, script, args } of used) {
      expect(Object.keys(scripts), at).toContain(script);
      const given = args.filter((word) => word !== '--');
      if (script === 'bench')
        for (const name of given) expect([...benches, 'all', 'NAME'], at).toContain(name);
      else if (script === 'images') for (const name of given) expect(IMAGES, at).toContain(name);
      else if (script === 'demo:cluster') expect(['', '--no-shell'], at).toContain(given.join(' '));
      else expect(given, `${at}: npm run ${script ?? ''} takes no arguments`).toEqual([]);
    }
  });

  it('names files of tests that there are', () => {
    const runs = WRITTEN.filter(({ text }) => text.startsWith('npx vitest run'));
    expect(runs.length).toBeGreaterThan(0);
    for (const { at, text } of runs) {
      const files = wordsOf(text).filter((word) => word.includes('/'));
      for (const file of files) expect(existsSync(join(REPOSITORY, file)), `${at}: ${file}`).toBe(true);
    }
    for (const { at, text } of WRITTEN) {
      const [, suite] = /RUNTIME_ENFORCER_SUITE=(\S+) npm run test/.exec(text) ?? [];
      if (suite === undefined) continue;
      expect(globSync(`test/*/${suite}.guest.test.ts`, { cwd: REPOSITORY }), `${at}: ${suite}`).toHaveLength(
        1,
      );
    }
  });

  it('names variables of the environment that something reads', () => {
    const names = new Set(WRITTEN.flatMap(({ text }) => text.match(/\bRUNTIME_ENFORCER_[A-Z_]+/g) ?? []));
    const source = SOURCES.map(read).join('\n');
    expect(names.size).toBeGreaterThan(3);
    for (const name of names) expect(source.includes(`'${name}'`), name).toBe(true);
  });

  it('tells commands of the agent that it understands', () => {
    const commands = agentCommands();
    const names = new Set(commands.map(({ args }) => args[0]));
    for (const name of Object.keys(COMMANDS)) expect([...names], 'no document tells of it').toContain(name);
    for (const { written, args } of commands) {
      // A phrase may be no more than the command's name.
      const isName = written.kind === 'phrase' && args.length === 1 && Object.hasOwn(COMMANDS, args[0] ?? '');
      if (isName) continue;
      expect(() => readCommand(args, {}), `${written.at}: ${written.text}`).not.toThrow();
    }
  });

  it('names options that the agent has', () => {
    const helps = [helpText(), ...(Object.keys(COMMANDS) as (keyof typeof COMMANDS)[]).map(commandHelpText)];
    const known = helps.flatMap((help) => Array.from(help.matchAll(/--([a-z-]+)/g), ([, name]) => name));
    const told = WRITTEN.filter(({ at }) => /standalone|threat-model|known-gaps|kernel/.test(at))
      .filter(({ text }) => text.startsWith('--'))
      .map(({ text }) => /^--([a-z-]+)/.exec(text)?.[1] ?? text);
    expect(told.length).toBeGreaterThan(3);
    for (const name of told) expect(known).toContain(name);
  });
});
