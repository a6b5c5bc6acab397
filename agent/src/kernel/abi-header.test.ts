import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

import { parseAbiHeader } from './abi-header.ts';
import { renderAbi } from './generate-abi.ts';

const HEADER = fileURLToPath(new URL('../../../bpf/abi.h', import.meta.url));
const KEY_BYTES = '#define FOR_EACH_ALLOWED_KEY_BYTES(DO) DO(32) DO(64)\n';

test('reads constants, enums, structs and key sizes', () => {
  const header = parseAbiHeader(`
/* a comment
   of two lines */
#ifndef X_H
#define X_H
#define NAME_BYTES 3
${KEY_BYTES}
enum mode { MODE_A = 0, /* zero */ MODE_B = 7, };
struct mixed {
	__u8 first; /* one */
	__u64 second;
	char name[NAME_BYTES];
	__u16 last;
};
#endif
`);
  expect(header.constants).toEqual([{ name: 'NAME_BYTES', value: 3 }]);
  expect(header.allowedKeyBytes).toEqual([32, 64]);
  expect(header.enums).toEqual([
    {
      name: 'mode',
      members: [
        { name: 'MODE_A', value: 0 },
        { name: 'MODE_B', value: 7 },
      ],
    },
  ]);
  expect(header.structs).toEqual([
    {
      name: 'mixed',
      size: 24,
      fields: [
        { name: 'first', offset: 0, bytes: 1 },
        { name: 'second', offset: 8, bytes: 8 },
        { name: 'name', offset: 16, bytes: 3 },
        { name: 'last', offset: 20, bytes: 2 },
      ],
    },
  ]);
});

test.each([
  ['struct s { long x; };', "struct s: cannot read field 'long x'"],
  ['struct s { __u32 x : 3; };', "cannot read field '__u32 x : 3'"],
  ['struct s { __u8 x[UNKNOWN]; };', "'UNKNOWN' is neither a number nor defined above"],
  ['enum e { A };', "enum member 'A' needs an explicit value"],
  ['#define SUM (1 + 2)', "cannot read '#define SUM (1 + 2)'"],
  ['#include "other.h"', 'cannot read \'#include "other.h"\''],
  ['typedef int x;', "cannot read 'typedef int x;'"],
])('refuses %s', (text, message) => {
  expect(() => parseAbiHeader(KEY_BYTES + text)).toThrow(message);
});

test('refuses a header without key sizes', () => {
  expect(() => parseAbiHeader('#define A 1\n')).toThrow('FOR_EACH_ALLOWED_KEY_BYTES is missing');
});

test('the compiler lays out every struct, and numbers every constant and enum, as the copy says', () => {
  const header = parseAbiHeader(readFileSync(HEADER, 'utf8'));
  const asserts = [
    ...header.constants.map(({ name, value }) => `${name} == ${value}`),
    ...header.enums.flatMap(({ members }) => members.map(({ name, value }) => `${name} == ${value}`)),
    ...header.structs.flatMap(({ name, size, fields }) => [
      `sizeof(struct ${name}) == ${size}`,
      ...fields.map((field) => `__builtin_offsetof(struct ${name}, ${field.name}) == ${field.offset}`),
      ...fields.map((field) => `sizeof(((struct ${name} *)0)->${field.name}) == ${field.bytes}`),
    ]),
  ];
  expect(header.structs.length).toBeGreaterThan(4);
  const program = [
    '#include <linux/types.h>',
    `#include "${HEADER}"`,
    ...asserts.map((assert) => `_Static_assert(${assert}, "${assert}");`),
  ].join('\n');
  compileForBpf(program);
  const wrong = program.replace('sizeof(struct container) == ', 'sizeof(struct container) == 1');
  expect(() => compileForBpf(wrong)).toThrow();
});

test('gen/abi.ts is current', () => {
  const wanted = renderAbi(parseAbiHeader(readFileSync(HEADER, 'utf8')));
  expect(readFileSync(new URL('gen/abi.ts', import.meta.url), 'utf8')).toBe(wanted);
});

function compileForBpf(program: string): void {
  const machine = process.arch === 'x64' ? 'x86_64' : 'aarch64';
  const include = `-I/usr/include/${machine}-linux-gnu`;
  execFileSync('clang', ['-target', 'bpf', include, '-fsyntax-only', '-x', 'c', '-'], {
    input: program,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}
