/** One field of a struct, placed as C places it. */
export interface AbiField {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
}

export interface AbiStruct {
  readonly name: string;
  readonly size: number;
  readonly fields: readonly AbiField[];
}

export interface AbiEnum {
  readonly name: string;
  readonly members: readonly { readonly name: string; readonly value: number }[];
}

export interface AbiHeader {
  readonly constants: readonly { readonly name: string; readonly value: number }[];
  readonly enums: readonly AbiEnum[];
  readonly structs: readonly AbiStruct[];
  readonly allowedKeyBytes: readonly number[];
}

const FIELD_BYTES: Readonly<Record<string, number>> = {
  __u8: 1,
  char: 1,
  __u16: 2,
  __u32: 4,
  __s32: 4,
  __u64: 8,
  __s64: 8,
};

/**
 * Reads the ABI header's restricted C: `#define NAME number`, the list of key sizes, enums with explicit values
 * and structs of fixed-width fields and arrays of them. Anything else is an Error with the text that it stopped
 * at, so that a layout is never guessed.
 */
export function parseAbiHeader(text: string): AbiHeader {
  const constants: { name: string; value: number }[] = [];
  const enums: AbiEnum[] = [];
  const structs: AbiStruct[] = [];
  let allowedKeyBytes: number[] = [];
  const constantValue = (word: string): number => {
    const value = constants.find(({ name }) => name === word)?.value ?? Number(word);
    if (!Number.isSafeInteger(value))
      throw new Error(`abi.h: '${word}' is neither a number nor defined above`);
    return value;
  };

  let rest = text.replace(/\/\*[\s\S]*?\*\//g, '').trimStart();
  while (rest !== '') {
    const [whole, directive, kind, name = '', body = ''] =
      /^(#[^\n]*)/.exec(rest) ?? /^()(enum|struct)\s+(\w+)\s*\{([^}]*)\};/.exec(rest) ?? [];
    if (whole === undefined) throw new Error(`abi.h: cannot read '${rest.split('\n')[0] ?? ''}'`);
    if (directive) readDirective(directive);
    else if (kind === 'enum') enums.push({ name, members: parseMembers(body, constantValue) });
    else structs.push(layOut(name, body, constantValue));
    rest = rest.slice(whole.length).trimStart();
  }
  if (allowedKeyBytes.length === 0) throw new Error('abi.h: FOR_EACH_ALLOWED_KEY_BYTES is missing');
  return { constants, enums, structs, allowedKeyBytes };

  function readDirective(line: string): void {
    const keyBytes = /^#define FOR_EACH_ALLOWED_KEY_BYTES\(DO\) ((?:DO\(\d+\)\s*)+)$/.exec(line)?.[1];
    const [, name, value] = /^#define (\w+) (\d+)\s*$/.exec(line) ?? [];
    if (keyBytes !== undefined)
      allowedKeyBytes = Array.from(keyBytes.matchAll(/\d+/g), ([digits]) => Number(digits));
    else if (name !== undefined && value !== undefined) constants.push({ name, value: Number(value) });
    else if (!/^#(ifndef \w+|endif|define \w+_H)\s*$/.test(line))
      throw new Error(`abi.h: cannot read '${line}'`);
  }
}

function parseMembers(body: string, constantValue: (word: string) => number): AbiEnum['members'] {
  return body
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '')
    .map((member) => {
      const [, name, value] = /^(\w+)\s*=\s*(\w+)$/.exec(member) ?? [];
      if (name === undefined || value === undefined)
        throw new Error(`abi.h: enum member '${member}' needs an explicit value`);
      return { name, value: constantValue(value) };
    });
}

/** Natural alignment, as every 64-bit C compiler lays such structs out. */
function layOut(name: string, body: string, constantValue: (word: string) => number): AbiStruct {
  const fields: AbiField[] = [];
  let end = 0;
  let alignment = 1;
  for (const declaration of body.split(';').map((line) => line.trim())) {
    if (declaration === '') continue;
    const [, type = '', field, length] = /^(\w+)\s+(\w+)(?:\[(\w+)\])?$/.exec(declaration) ?? [];
    const each = FIELD_BYTES[type];
    if (field === undefined || each === undefined)
      throw new Error(`abi.h: struct ${name}: cannot read field '${declaration}'`);
    const offset = Math.ceil(end / each) * each;
    const bytes = each * (length === undefined ? 1 : constantValue(length));
    fields.push({ name: field, offset, bytes });
    end = offset + bytes;
    alignment = Math.max(alignment, each);
  }
  return { name, size: Math.ceil(end / alignment) * alignment, fields };
}
