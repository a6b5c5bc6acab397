import { describe, expect, it } from 'vitest';
import type { CommandContext, RunCommand } from './command-context.ts';
import { EXIT_FINDING } from './exit-code.ts';
import { UsageError } from './plugin-error.ts';
import { runProgram } from './program.ts';
import type { CommandSpec } from './tree/command-spec.ts';
import { ROOT } from './tree/root.ts';

interface Call {
  readonly command: string;
  readonly operands: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
}

/** The whole tree, with commands that only tell how they were called. */
function recorded(spec: CommandSpec, name: string, calls: Call[]): CommandSpec {
  const flags = (spec.options ?? []).map((option) => /--([a-z-]+)/.exec(option.flags)?.[1] ?? '');
  const run: RunCommand = async (_context, operands, options) => {
    const given = flags.flatMap((flag) => {
      const value = options.text(flag) ?? (options.flag(flag) ? true : undefined);
      return value === undefined ? [] : [[flag, value] as const];
    });
    calls.push({ command: name, operands, options: Object.fromEntries(given) });
    return await Promise.resolve(EXIT_FINDING);
  };
  return {
    ...spec,
    ...(spec.load && { load: async () => await Promise.resolve(run) }),
    subcommands: spec.subcommands?.map((each) => recorded(each, `${name} ${each.name}`.trim(), calls)) ?? [],
  };
}

async function runLine(line: string) {
  const calls: Call[] = [];
  let output = '';
  let flags: CommandContext['flags'] = {};
  const exitCode = await runProgram(
    recorded(ROOT, '', calls),
    line === '' ? [] : line.split(' '),
    { write: (text) => (output += text) },
    (given) => {
      flags = given;
      return {} as CommandContext;
    },
  );
  return { exitCode, call: calls[0], output, flags };
}

describe('runProgram', () => {
  it.each<[string, string, readonly string[], Readonly<Record<string, unknown>>]>([
    ['promote a b --mode protect', 'promote', ['a', 'b'], { mode: 'protect' }],
    ['promote --dry-run a', 'promote', ['a'], { 'dry-run': 'server' }],
    ['promote a --dry-run=client --wait=false', 'promote', ['a'], { 'dry-run': 'client', 'no-wait': true }],
    ['policy show web -o json', 'policy show', ['web'], { output: 'json' }],
    ['policy show -o json web', 'policy show', ['web'], { output: 'json' }],
    [
      'policy show protection -A -o json',
      'policy show protection',
      [],
      { 'all-namespaces': true, output: 'json' },
    ],
    ['policy list --no-headers -o wide', 'policy list', [], { 'no-headers': true, output: 'wide' }],
    ['policy list --all-namespaces=true', 'policy list', [], { 'all-namespaces': true }],
    ['policy list --all-namespaces=false', 'policy list', [], {}],
    ['policy allow p c /a /b', 'policy allow', ['p', 'c', '/a', '/b'], {}],
    ['policy allow p c -- -odd', 'policy allow', ['p', 'c', '-odd'], {}],
    ['bind deployment/a b --wait=false', 'bind', ['deployment/a', 'b'], {}],
    ['bind deployment/a b --wait=true -y', 'bind', ['deployment/a', 'b'], { wait: true, yes: true }],
    ['policy protect p --wait --timeout 5s', 'policy protect', ['p'], { wait: true, timeout: '5s' }],
    ['-n promote policy protect p --wait=false', 'policy protect', ['p'], {}],
    ['violations -w --since 5m', 'violations', [], { watch: true, since: '5m' }],
  ])('%s', async (line, command, operands, options) => {
    const { call, exitCode } = await runLine(line);
    expect(call).toEqual({ command, operands, options });
    expect(exitCode).toBe(EXIT_FINDING);
  });

  it("takes kubectl's flags wherever they stand", async () => {
    for (const line of [
      '-n shop policy list --as-group a --as-group b',
      'policy list --as-group a -n shop --as-group b',
    ]) {
      expect((await runLine(line)).flags).toMatchObject({ namespace: 'shop', asGroup: ['a', 'b'] });
    }
    for (const line of ['policy list -v=6', 'policy list -v 6', '-v6 policy list', 'policy list --v=6']) {
      expect((await runLine(line)).flags.verbosity).toBe(6);
    }
  });

  it('prints help for everything, with examples for every command', async () => {
    for (const line of ['', '--help', 'policy', 'policy --help', 'help', 'help policy', 'policy help']) {
      const { output, exitCode } = await runLine(line);
      expect(output).toContain('Usage: kubectl runtime-enforcer');
      expect(exitCode).toBe(0);
    }
    const visit = async (spec: CommandSpec, path: string): Promise<void> => {
      if (spec.load !== undefined && spec.name !== 'options') {
        expect((await runLine(`${path} --help`)).output).toContain(`kubectl runtime-enforcer ${path}`);
        expect(spec.examples?.length).toBeGreaterThan(0);
      }
      for (const each of spec.subcommands ?? []) await visit(each, `${path} ${each.name}`.trim());
    };
    await visit(ROOT, '');
  });

  it('tells of a command what it is asked by the word help, and takes that word for a name elsewhere', async () => {
    const asked = await runLine('policy allow --help');
    for (const line of ['help policy allow', 'policy help allow'])
      expect(await runLine(line)).toMatchObject({ output: asked.output, exitCode: 0 });
    expect((await runLine('policy show help')).call).toMatchObject({ operands: ['help'] });
    expect((await runLine('violations help')).call).toMatchObject({ operands: ['help'] });
  });

  it('has examples that it understands itself', async () => {
    const examples = (spec: CommandSpec): readonly string[] => [
      ...(spec.examples ?? []).map(([command]) => command),
      ...(spec.subcommands ?? []).flatMap(examples),
    ];
    for (const example of examples(ROOT)) {
      const [line = ''] = example.replace(/"[^"]*"/g, 'text').split(' > ');
      expect((await runLine(line)).call?.command, example).toBeTruthy();
    }
  });

  it.each([
    ['polcy list', "unknown command 'polcy' (Did you mean policy?)"],
    ['policy lst', "unknown command 'lst' (Did you mean list?)"],
    ['list', "unknown command 'list' (Did you mean proposal list or policy list?)"],
    ['protect web', "unknown command 'protect' (Did you mean policy protect?)"],
    ['policy list --outptu x', "unknown option '--outptu' (Did you mean --output?)"],
    ['policy protect', "missing required argument 'POLICY'"],
    ['policy protect a b', 'too many arguments'],
    ['policy list -o', 'argument missing'],
  ])('refuses %s in a sentence', async (line, message) => {
    const failure: unknown = await runLine(line).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UsageError);
    expect(String(failure)).toContain(message);
    expect((failure as UsageError).remedy).toContain('--help');
  });
});
