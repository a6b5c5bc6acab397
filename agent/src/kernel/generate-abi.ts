/**
 * Writes gen/abi.ts, the TypeScript copy of bpf/abi.h.
 *
 *   node agent/src/kernel/generate-abi.ts           writes it
 *   node agent/src/kernel/generate-abi.ts --check   exit code 1 if it is not current
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { parseAbiHeader, type AbiEnum, type AbiHeader, type AbiStruct } from './abi-header.ts';

const HEADER = new URL('../../../bpf/abi.h', import.meta.url);
const COPY = new URL('gen/abi.ts', import.meta.url);

/** The text of gen/abi.ts for a parsed header. */
export function renderAbi(header: AbiHeader): string {
  return [
    '// Generated from bpf/abi.h by agent/src/kernel/generate-abi.ts: change the header, then run that again.\n',
    ...header.constants.map(({ name, value }) => `export const ${name} = ${value};`),
    '',
    '/** Key sizes of the allow-list tables, ascending; table `allowed_<bytes>`. */',
    `export const ALLOWED_KEY_BYTES = Object.freeze([${header.allowedKeyBytes.join(', ')}] as const);\n`,
    ...header.enums.map(renderEnum),
    ...header.structs.map(renderStruct),
  ].join('\n');
}

function renderEnum({ name, members }: AbiEnum): string {
  const type = name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
  const lines = members.map((member) => `  ${member.name}: ${member.value},`);
  return `export const ${type} = Object.freeze({\n${lines.join('\n')}\n} as const);\nexport type ${type} = (typeof ${type})[keyof typeof ${type}];\n`;
}

function renderStruct({ name, size, fields }: AbiStruct): string {
  const offsets = fields.map((field) => `    ${field.name}: ${field.offset},`);
  return [
    `export const ${name.toUpperCase()}_LAYOUT = Object.freeze({`,
    `  size: ${size},`,
    '  offsets: Object.freeze({',
    ...offsets,
    '  } as const),',
    '} as const);\n',
  ].join('\n');
}

function main(): void {
  const wanted = renderAbi(parseAbiHeader(readFileSync(HEADER, 'utf8')));
  if (!process.argv.includes('--check')) {
    mkdirSync(new URL('.', COPY), { recursive: true });
    writeFileSync(COPY, wanted);
    return;
  }
  let found = '';
  try {
    found = readFileSync(COPY, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  if (found !== wanted) {
    console.error(
      'agent/src/kernel/gen/abi.ts is not what bpf/abi.h says; run: node agent/src/kernel/generate-abi.ts',
    );
    process.exitCode = 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
