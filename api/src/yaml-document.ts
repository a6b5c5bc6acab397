import { Composer, isMap, isScalar, isSeq, LineCounter, Parser, type Pair } from 'yaml';
import { quote, type PathSegment } from './field-error.ts';

/** Largest text that is read. */
export const MAX_YAML_BYTES = 8 * 1024 * 1024;
const MAX_DOCUMENTS = 1000;
/** Deepest nesting of a document; a policy needs seven levels. */
const MAX_DEPTH = 32;

/** A place in a text, from 1; columns count characters. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** What keeps a text from being read, and where. */
export interface YamlError extends Position {
  readonly message: string;
  readonly expected: string;
  readonly remedy?: string;
}

/** One YAML document as plain data. */
export interface YamlDocument {
  readonly data: unknown;
  /** Where a field stands; a missing one stands where its nearest enclosing field does. */
  readonly locate: (segments: readonly PathSegment[]) => Position;
}

export type YamlResult =
  | { readonly ok: true; readonly documents: readonly YamlDocument[] }
  | { readonly ok: false; readonly errors: readonly YamlError[] };

type Problem = Omit<YamlError, 'line' | 'column'>;

/**
 * Reads the bytes of a file as YAML documents of plain data: text keys, each once per map, no anchors, aliases or
 * tags. Documents without content are left out. Of a document that is not YAML the first error alone is reported,
 * because the others follow from it.
 */
export function readYaml(content: Uint8Array): YamlResult {
  const unreadable = unreadableBytes(content);
  if (unreadable !== undefined) return { ok: false, errors: [unreadable] };
  const text = new TextDecoder().decode(content);
  const lines = new LineCounter();
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const documents: YamlDocument[] = [];
  const errors: YamlError[] = [];
  const composer = new Composer({ uniqueKeys: false, prettyErrors: false, logLevel: 'silent' });
  for (const document of composer.compose(new Parser(lines.addNewLine).parse(text), false, text.length)) {
    const [error] = document.errors;
    if (error !== undefined) {
      errors.push({ ...position(error.pos[0]), ...syntaxProblem(error.message) });
      continue;
    }
    if (isEmpty(document.contents)) continue;
    if (documents.length === MAX_DOCUMENTS) {
      errors.push({
        ...position(document.range[0]),
        message: `the file holds more than ${MAX_DOCUMENTS} documents`,
        expected: `at most ${MAX_DOCUMENTS}`,
      });
      break;
    }
    const data = plainData(document.contents, (offset, problem) =>
      errors.push({ ...position(offset), ...problem }),
    );
    const root: unknown = document.contents;
    documents.push({ data, locate: (segments) => position(offsetOf(root, segments)) });
  }
  return errors.length === 0 ? { ok: true, documents } : { ok: false, errors };
}

/** Nothing but comments between two separators; an explicit null has a source. */
function isEmpty(contents: unknown): boolean {
  return contents === null || (isScalar(contents) && contents.value === null && !contents.source);
}

function unreadableBytes(content: Uint8Array): YamlError | undefined {
  const start = { line: 1, column: 1, expected: 'a YAML file in UTF-8' };
  if (content.length > MAX_YAML_BYTES) {
    const message = `the file has ${content.length} bytes`;
    return { ...start, message, expected: 'at most 8 MiB', remedy: 'split it into several files' };
  }
  const [first, second, third] = content;
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  if (isUtf16 || (first === 0xef && second === 0xbb && third === 0xbf)) {
    const message = `the file starts with a byte order mark${isUtf16 ? ' of UTF-16' : ''}`;
    return { ...start, message, remedy: 'save it as UTF-8 without one' };
  }
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(content);
    return undefined;
  } catch {
    return { ...start, ...firstInvalidByte(content), message: 'the file holds bytes that are not UTF-8' };
  }
}

function firstInvalidByte(content: Uint8Array): Position {
  const encoder = new TextEncoder();
  let line = 1;
  for (let start = 0; start < content.length; line++) {
    const end = content.indexOf(0x0a, start);
    const bytes = content.subarray(start, end === -1 ? content.length : end);
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
    const valid = encoder.encode(text);
    if (valid.length !== bytes.length || valid.some((byte, index) => byte !== bytes[index])) {
      const firstDifference = valid.findIndex((byte, index) => byte !== bytes[index]);
      return { line, column: new TextDecoder().decode(bytes.subarray(0, firstDifference)).length + 1 };
    }
    start += bytes.length + 1;
  }
  return { line, column: 1 };
}

function syntaxProblem(message: string): Problem {
  const expected = 'valid YAML';
  if (message.includes('call stack')) return { message: 'the nesting is too deep', expected };
  const remedy = /\btabs?\b/i.test(message) ? { remedy: 'indent with spaces' } : {};
  return { message: message.replace(/\s+/g, ' '), expected, ...remedy };
}

function plainData(root: unknown, report: (offset: number, problem: Problem) => void): unknown {
  const read = (node: unknown, depth: number): unknown => {
    if (node === null) return null;
    const problem = unsupported(node, depth);
    if (problem !== undefined) {
      report(startOf(node), problem);
      return null;
    }
    if (isScalar(node)) return node.value;
    if (isSeq(node)) return node.items.map((item) => read(item, depth + 1));
    if (!isMap(node)) return null;
    const entries = new Map<string, unknown>();
    for (const pair of node.items) {
      const key = keyOf(pair);
      if (key === undefined) {
        report(startOf(pair.key ?? node), {
          message: 'the key is not text',
          expected: 'the name of a field',
        });
      } else if (entries.has(key)) {
        report(startOf(pair.key), {
          message: `the key ${quote(key)} stands here again`,
          expected: 'every key once',
          remedy: 'remove one, or join what stands under both',
        });
      } else {
        entries.set(key, read(pair.value, depth + 1));
      }
    }
    return Object.fromEntries(entries);
  };
  return read(root, 1);
}

function unsupported(node: unknown, depth: number): Problem | undefined {
  if (depth > MAX_DEPTH)
    return { message: 'the nesting is too deep', expected: `at most ${MAX_DEPTH} levels` };
  if (isScalar(node) || isSeq(node) || isMap(node)) {
    if (node.anchor !== undefined) {
      return { message: `the anchor ${quote(`&${node.anchor}`)} stands here`, ...PLAIN };
    }
    if (node.tag !== undefined) return { message: `the tag ${quote(node.tag)} stands here`, ...PLAIN };
    return undefined;
  }
  return { message: 'an alias stands here', ...PLAIN };
}

const PLAIN = {
  expected: 'plain YAML without anchors, aliases and tags',
  remedy: 'write the value out',
} as const;

/** Of a plain scalar its source, so that the container `010` is not called `10`. */
function keyOf(pair: Pair): string | undefined {
  const { key } = pair;
  if (!isScalar(key) || key.anchor !== undefined || key.tag !== undefined || key.value === null)
    return undefined;
  return typeof key.value === 'string' ? key.value : key.source;
}

function startOf(node: unknown): number {
  const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
  return Array.isArray(range) && typeof range[0] === 'number' ? range[0] : 0;
}

function offsetOf(root: unknown, segments: readonly PathSegment[]): number {
  let offset = startOf(root);
  let node = root;
  for (const segment of segments) {
    if (isSeq(node) && typeof segment === 'number') {
      node = node.items[segment];
      if (node === undefined) return offset;
      offset = startOf(node);
    } else if (isMap(node)) {
      const pair = node.items.find((each) => keyOf(each) === segment);
      if (pair === undefined) return offset;
      node = pair.value;
      offset = isScalar(node) && node.source !== '' ? startOf(node) : startOf(pair.key);
    } else {
      return offset;
    }
  }
  return offset;
}
