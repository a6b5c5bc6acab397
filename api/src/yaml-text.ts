/**
 * What is written without quotes. Narrow, so that no reader of YAML, 1.1 or 1.2, takes it for anything but this text:
 * no numbers, dates or indicators, and none of the words below.
 */
const PLAIN = /^[A-Za-z/_](?: ?[A-Za-z0-9/_.\\+@%=~-])*$/;
const OTHER_MEANING = /^(?:null|true|false|yes|no|on|off|y|n)$/i;
/** Characters of a JSON string that YAML does not take as they are, or that a reader could not see. */
const UNPRINTABLE = /[\u007f-\u00a0\u2028\u2029\ufeff\ufffe\uffff]/g;
const INDENT = '  ';

/**
 * Writes plain data (records, arrays, strings, numbers, booleans, null) as one YAML document in block style, a string
 * a line. Fields that are undefined are left out, as JSON does. Much faster than a YAML library, which builds a tree
 * of nodes first.
 *
 * @throws TypeError for anything that YAML's JSON schema has not, such as a function or a number that is not finite
 */
export function yamlText(data: Readonly<Record<string, unknown>>): string {
  if (isEmpty(data)) return '{}\n';
  const lines: string[] = [];
  writeRecord(data, '', '', lines);
  return `${lines.join('\n')}\n`;
}

/** `first` stands before the first line, `indent` before all others. */
function writeRecord(record: object, first: string, indent: string, lines: string[]): void {
  let lead = first;
  for (const [key, value] of Object.entries(record)) {
    if (value === undefined) continue;
    writeValue(value, `${lead}${scalar(key)}:`, indent, lines);
    lead = indent;
  }
}

function writeValue(value: unknown, lead: string, indent: string, lines: string[]): void {
  if (typeof value !== 'object' || value === null) {
    lines.push(`${lead} ${scalar(value)}`);
  } else if (Array.isArray(value)) {
    if (value.length === 0) lines.push(`${lead} []`);
    else {
      lines.push(lead);
      for (const item of value as readonly unknown[]) writeItem(item, `${indent}${INDENT}`, lines);
    }
  } else if (isEmpty(value)) {
    lines.push(`${lead} {}`);
  } else {
    lines.push(lead);
    writeRecord(value, `${indent}${INDENT}`, `${indent}${INDENT}`, lines);
  }
}

function writeItem(item: unknown, indent: string, lines: string[]): void {
  const isRecord = typeof item === 'object' && item !== null && !Array.isArray(item) && !isEmpty(item);
  if (isRecord) writeRecord(item, `${indent}- `, `${indent}${INDENT}`, lines);
  else writeValue(item, `${indent}-`, indent, lines);
}

function isEmpty(record: object): boolean {
  return Object.values(record).every((value) => value === undefined);
}

function scalar(value: unknown): string {
  if (typeof value === 'string')
    return PLAIN.test(value) && !OTHER_MEANING.test(value) ? value : quoted(value);
  if (typeof value === 'boolean' || value === null || Number.isFinite(value)) return String(value);
  throw new TypeError(`${typeof value} cannot be written as YAML`);
}

/** JSON's strings are YAML's double-quoted ones. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
