import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatDocumentError,
  formatPolicy,
  formatProposal,
  parsePolicyDocuments,
  parseProposalDocuments,
} from './policy-document.ts';
import { policyObject, proposalObject } from './testing/resource-arbitrary.ts';
import { parseWorkloadPolicy } from './workload-policy.ts';
import { parseWorkloadPolicyProposal } from './workload-policy-proposal.ts';
import { MAX_YAML_BYTES } from './yaml-document.ts';

const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const source = (text: string | Uint8Array) => ({
  file: 'web.yaml',
  content: typeof text === 'string' ? new TextEncoder().encode(text) : text,
});

function errorsOf(text: string | Uint8Array): string[] {
  const parsed = parsePolicyDocuments(source(text));
  if (parsed.ok) throw new Error(`accepted: ${JSON.stringify(parsed.values)}`);
  return parsed.errors.map(formatDocumentError);
}

function policy(spec: string, name = 'web'): string {
  return `apiVersion: runtimeenforcer.kubewarden.io/v1alpha1
kind: WorkloadPolicy
metadata:
  name: ${name}
spec:
${spec.replace(/^/gm, '  ')}
`;
}

const allowing = (path: string) =>
  policy(`mode: monitor
rulesByContainer:
  app:
    executables:
      allowed:
        - /usr/bin/ls
        - ${path}`);

describe('parsePolicyDocuments', () => {
  it('reads the policies of a file, with defaults, past empty documents', () => {
    const file = `# the shop\n---\n${allowing('"/opt/my app"')}---\n# nothing\n---\n${policy('mode: protect', 'api')}...\n`;
    expect(parsePolicyDocuments(source(file))).toMatchObject({
      ok: true,
      values: [
        {
          metadata: { name: 'web', namespace: 'default' },
          spec: {
            mode: 'monitor',
            unlistedContainers: 'allow',
            binding: { autoBind: false },
            rulesByContainer: new Map([
              [
                'app',
                { executables: { allowed: ['/usr/bin/ls', '/opt/my app'], otherMountNamespaces: 'deny' } },
              ],
            ]),
          },
        },
        { metadata: { name: 'api' }, spec: { mode: 'protect', rulesByContainer: new Map() } },
      ],
    });
  });

  it('reads what kubectl prints', () => {
    const printed = allowing('/bin/sh').replace(
      '  name: web\n',
      `  name: web
  creationTimestamp: null
  resourceVersion: "12"
  uid: 1c6d
  generation: 3
  managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {}}}]
  annotations: {"kubectl.kubernetes.io/last-applied-configuration": "{}\\n"}
`,
    );
    expect(parsePolicyDocuments(source(printed))).toMatchObject({ ok: true });
    expect(parsePolicyDocuments(source(printed.replaceAll('\n', '\r\n')))).toMatchObject({ ok: true });
  });

  it.each<[string, string, string]>([
    [
      'a relative path',
      'bin/sh',
      'web.yaml:12:13: spec.rulesByContainer.app.executables.allowed[1]: "bin/sh" does not',
    ],
    [
      'a path twice',
      '/usr/bin/ls',
      'web.yaml:12:13: spec.rulesByContainer.app.executables.allowed[1]: the entry repeats',
    ],
    [
      'a number',
      '5',
      'web.yaml:12:13: spec.rulesByContainer.app.executables.allowed[1]: the path is not text',
    ],
    ['nothing', '', 'web.yaml:12:13: spec.rulesByContainer.app.executables.allowed[1]: the path is not text'],
    [
      'a list',
      '[/a]',
      'web.yaml:12:13: spec.rulesByContainer.app.executables.allowed[1]: the path is not text',
    ],
    [
      'a deleted file',
      '"/x (deleted)"',
      'web.yaml:12:13: spec.rulesByContainer.app.executables.allowed[1]: ',
    ],
    ['an alias', '*x', 'web.yaml:12:13: an alias stands here; expected plain YAML'],
    ['an anchor', '&x /a', 'web.yaml:12:16: the anchor "&x" stands here; expected plain YAML'],
    [
      'a tag',
      '!!binary aGk=',
      'web.yaml:12:22: the tag "tag:yaml.org,2002:binary" stands here; expected plain YAML',
    ],
    ['an unknown tag', '!exec /a', 'web.yaml:12:19: the tag "!exec" stands here; expected plain YAML'],
  ])('names the place of %s in a list of paths', (_, path, error) => {
    const errors = errorsOf(allowing(path));
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain(error);
  });

  it.each<[string, string | Uint8Array, string]>([
    ['an empty file', '', 'web.yaml:1:1: the file holds no document; expected at least one resource'],
    ['comments only', '# a\n---\n# b\n', 'web.yaml:1:1: the file holds no document'],
    [
      'null',
      'null',
      'web.yaml:1:1: nothing (null) stands here; expected an object with the fields apiVersion',
    ],
    ['a list', '- a', 'web.yaml:1:1: a list stands here; expected an object'],
    ['a text', 'hello', 'web.yaml:1:1: the text "hello" stands here; expected an object'],
    [
      'a tab',
      'spec:\n\tmode: monitor\n',
      'web.yaml:2:1: Tabs are not allowed as indentation; expected valid YAML; indent with spaces',
    ],
    ['an open bracket', 'a: [1\nb: 2\n', 'web.yaml:2:1: '],
    [
      'a byte order mark',
      '\ufeffkind: x',
      'web.yaml:1:1: the file starts with a byte order mark; expected a YAML file in UTF-8; save it',
    ],
    ['UTF-16', latin1('\xff\xfek\0'), 'web.yaml:1:1: the file starts with a byte order mark of UTF-16'],
    ['Latin-1', latin1('a: b\nc: caf\xe9 x\n'), 'web.yaml:2:7: the file holds bytes that are not UTF-8'],
    ['a cut character', latin1('a: \xe2\x80'), 'web.yaml:1:4: the file holds bytes that are not UTF-8'],
    [
      'a file over the limit',
      new Uint8Array(MAX_YAML_BYTES + 1),
      'web.yaml:1:1: the file has 8388609 bytes; expected at most 8 MiB',
    ],
    [
      'a key twice',
      policy('mode: monitor\nmode: protect'),
      'web.yaml:7:3: the key "mode" stands here again; expected every key once',
    ],
    ['a key that is a list', '? [a]\n: b\n', 'web.yaml:1:3: the key is not text'],
    ['a key that is nothing', ': b\n', 'web.yaml:1:1: the key is not text'],
    [
      'an unknown field',
      policy('mode: monitor\nmodes: x'),
      'web.yaml:7:10: spec.modes: the field is unknown; expected one of mode, unlistedContainers',
    ],
    [
      'an unknown map',
      policy('mode: monitor\nrules:\n  app: {}'),
      'web.yaml:7:3: spec.rules: the field is unknown',
    ],
    [
      '__proto__',
      policy('mode: monitor\n__proto__: {}'),
      'web.yaml:7:3: spec.__proto__: the field is unknown',
    ],
    ['a missing mode', policy('binding: {}'), 'web.yaml:5:1: spec.mode: the field is missing'],
    [
      'a wrong mode',
      policy('mode: blok'),
      'web.yaml:6:9: spec.mode: "blok" is not known; expected one of monitor, protect',
    ],
    [
      'yes for true',
      policy('mode: monitor\nbinding: {autoBind: yes}'),
      'web.yaml:7:23: spec.binding.autoBind: the text "yes" stands here; expected true or false',
    ],
    [
      'null for a map',
      policy('mode: monitor\nrulesByContainer:'),
      'web.yaml:7:3: spec.rulesByContainer: nothing (null) stands here; expected a map',
    ],
    [
      'a bad container name',
      policy('mode: monitor\nrulesByContainer:\n  App: {}'),
      'web.yaml:8:5: spec.rulesByContainer.App: "App" is not a DNS label',
    ],
    ['a long name', policy('mode: monitor', 'x'.repeat(64)), 'web.yaml:4:9: metadata.name: the name "xxx'],
    [
      'a number for a name',
      policy('mode: monitor', '12'),
      'web.yaml:4:9: metadata.name: the name is not text',
    ],
    [
      'the same policy twice',
      `${policy('mode: monitor')}---\n${policy('mode: protect')}`,
      'web.yaml:11:9: metadata.name: default/web stands in line 4 already',
    ],
  ])('names the place of %s', (_, text, error) => {
    const errors = errorsOf(text);
    expect(errors[0]).toContain(error);
    expect(errors).toHaveLength(1);
  });

  it('speaks of the kind alone where it is another one', () => {
    expect(
      errorsOf('apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n'),
    ).toEqual([
      'web.yaml:1:13: apiVersion: "apps/v1" is not known; expected runtimeenforcer.kubewarden.io/v1alpha1',
      'web.yaml:2:7: kind: "Deployment" is not known; expected WorkloadPolicy',
    ]);
    expect(errorsOf(policy('mode: monitor').replace('WorkloadPolicy', 'WorkloadPolicyProposal'))).toEqual([
      'web.yaml:2:7: kind: "WorkloadPolicyProposal" is not known; expected WorkloadPolicy',
    ]);
  });

  it('refuses the whole file for one document, and reports all of them', () => {
    const file = `${policy('mode: monitor')}---\n${policy('mode: x', 'a')}---\n${policy('mode: y', 'b')}`;
    expect(errorsOf(file).map((error) => error.slice(0, 16))).toEqual([
      'web.yaml:13:9: s',
      'web.yaml:20:9: s',
    ]);
  });

  it.each<[string, string]>([
    ['brackets', '['.repeat(100_000)],
    ['braces', '{a: '.repeat(10_000)],
    ['dashes', '- '.repeat(10_000)],
    ['question marks', '? '.repeat(10_000)],
    ['forty levels', `${'['.repeat(40)}${']'.repeat(40)}`],
  ])('survives nesting of %s', (_, text) => {
    expect(errorsOf(text).join('\n')).toMatch(/^web\.yaml:1:\d+: .*; expected/);
  });

  it('survives an alias bomb', () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 12; level++) {
      lines.push(
        `a${level}: &a${level} [${Array(9)
          .fill(`*a${level - 1}`)
          .join(', ')}]`,
      );
    }
    expect(errorsOf(lines.join('\n'))[0]).toContain('web.yaml:1:9: the anchor "&a0" stands here');
  });

  it('bounds the number of documents and of errors', () => {
    expect(errorsOf('---\na: 1\n'.repeat(1500)).at(-1)).toContain('more than 1000 documents');
    const unknown = Array.from({ length: 5000 }, (_, index) => `f${index}: 1`).join('\n');
    expect(errorsOf(policy(`mode: monitor\n${unknown}`))).toHaveLength(50);
  });

  it('answers any text', () => {
    const word = fc.constantFrom(
      ...[
        'a',
        ':',
        ' ',
        '\n',
        '  ',
        '- ',
        '? ',
        '[',
        ']',
        '{',
        '}',
        ',',
        '"',
        "'",
        '|',
        '>',
        '&x ',
        '*x',
        '!t ',
        '#',
        '\t',
      ],
      ...[
        '---\n',
        '...\n',
        '%YAML 1.1\n',
        '<<',
        '\r',
        '\0',
        '\\',
        'spec',
        'kind: WorkloadPolicy\n',
        '\u2028',
      ],
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 40 }), (words) => {
        for (const error of errorsOf(words.join('')))
          expect(error).toMatch(/^web\.yaml:\d+:\d+: .+; expected .+/);
      }),
      { numRuns: 2000 },
    );
  });

  it('answers any damage to a policy', () => {
    const text = latin1(allowing('/opt/my-app'));
    const edits = fc.array(fc.tuple(fc.nat(text.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(edits, (changes) => {
        const content = Uint8Array.from(text);
        for (const [index, byte] of changes) content[index] = byte;
        const parsed = parsePolicyDocuments(source(content));
        if (parsed.ok) return;
        for (const { line, column, message } of parsed.errors) {
          expect(Math.min(line, column)).toBeGreaterThan(0);
          expect(message).not.toMatch(/[\p{Cc}]/u);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('formatPolicy and formatProposal', () => {
  it('write one stable text, whatever the order of containers and paths', () => {
    const file = policy(`mode: protect
unlistedContainers: deny
rulesByContainer:
  side: {executables: {otherMountNamespaces: unchecked, allowed: []}}
  app: {executables: {allowed: ["/x: y", "/b", /a\\xff, '/${'long '.repeat(40)}z']}}`);
    const parsed = parsePolicyDocuments(source(file));
    expect(parsed.ok && parsed.values[0] && formatPolicy(parsed.values[0]))
      .toBe(`apiVersion: runtimeenforcer.kubewarden.io/v1alpha1
kind: WorkloadPolicy
metadata:
  name: web
  namespace: default
spec:
  mode: protect
  unlistedContainers: deny
  rulesByContainer:
    app:
      executables:
        allowed:
          - /a\\xff
          - /b
          - /${'long '.repeat(40)}z
          - "/x: y"
    side:
      executables:
        allowed: []
        otherMountNamespaces: unchecked
`);
  });

  it('write what reads back the same', () => {
    fc.assert(
      fc.property(policyObject, proposalObject, (policyInput, proposalInput) => {
        const parsedPolicy = parseWorkloadPolicy(policyInput);
        if (parsedPolicy.ok) {
          const text = formatPolicy(parsedPolicy.value);
          const again = parsePolicyDocuments(source(text));
          expect(again.ok && again.values.map(formatPolicy)).toEqual([text]);
        }
        const parsedProposal = parseWorkloadPolicyProposal(proposalInput);
        if (parsedProposal.ok) {
          const text = formatProposal(parsedProposal.value);
          const again = parseProposalDocuments(source(text));
          expect(again.ok && again.values.map(formatProposal)).toEqual([text]);
        }
      }),
      { numRuns: 200 },
    );
  });
});
