import { fieldError, quote, type FieldError, type Parsed, type PathSegment } from './field-error.ts';

/** Collects what is wrong; a check that found nothing wrong returns a value. */
export interface Findings {
  readonly errors: FieldError[];
}

/**
 * Reads an untyped value that stands at a place. Null when it has reported an error there or below; null and no
 * error means that the value counts as absent.
 */
export type Check<T> = (input: unknown, at: readonly PathSegment[], findings: Findings) => T | null;

type Fields = Readonly<Record<string, Check<unknown>>>;
type ValueOf<C> = C extends Check<infer T> ? T : never;

/** What an object check yields: required fields always, optional ones where the input has them. */
export type ObjectOf<R extends Fields, O extends Fields> = { readonly [K in keyof R]: ValueOf<R[K]> } & {
  readonly [K in keyof O]?: ValueOf<O[K]>;
};

/** A hostile object must not cost a message per entry. */
const MAX_ERRORS = 50;

/** Runs a check over a whole object. Reports at most about fifty errors. */
export function parseWith<T>(check: Check<T>, input: unknown): Parsed<T> {
  const findings: Findings = { errors: [] };
  const value = check(input, [], findings);
  if (value !== null && findings.errors.length === 0) return { ok: true, value };
  return { ok: false, errors: findings.errors.slice(0, MAX_ERRORS) };
}

export function report(
  findings: Findings,
  at: readonly PathSegment[],
  text: { message: string; expected: string; remedy?: string },
): null {
  findings.errors.push(fieldError(at, text));
  return null;
}

/** Text of at most so many characters (Unicode code points, as the API server counts). */
export function text(options: { max: number; pattern?: RegExp; expected?: string }): Check<string> {
  const expected = options.expected ?? `text of at most ${options.max} characters`;
  return (input, at, findings) => {
    if (typeof input !== 'string') return wrongType(findings, at, input, expected);
    if (exceeds(input, options.max)) {
      return report(findings, at, { message: `the text is longer than ${options.max} characters`, expected });
    }
    if (options.pattern?.test(input) === false) {
      return report(findings, at, { message: `${quote(input)} is not allowed here`, expected });
    }
    return input;
  };
}

export function oneOf<const V extends readonly string[]>(values: V): Check<V[number]> {
  const expected = values.length === 1 ? (values[0] ?? '') : `one of ${values.join(', ')}`;
  return (input, at, findings) => {
    const value = values.find((candidate) => candidate === input);
    if (value !== undefined) return value;
    return typeof input === 'string'
      ? report(findings, at, { message: `${quote(input)} is not known`, expected })
      : wrongType(findings, at, input, expected);
  };
}

export const flag: Check<boolean> = (input, at, findings) =>
  typeof input === 'boolean' ? input : wrongType(findings, at, input, 'true or false');

/** A whole number that JavaScript holds exactly. */
export function wholeNumber(options: { min: number; max?: number }): Check<number> {
  const max = options.max ?? Number.MAX_SAFE_INTEGER;
  const expected = `a whole number from ${options.min} to ${max}`;
  return (input, at, findings) => {
    if (typeof input !== 'number') return wrongType(findings, at, input, expected);
    if (Number.isSafeInteger(input) && input >= options.min && input <= max) return input;
    return report(findings, at, { message: `${input} is out of range`, expected });
  };
}

/**
 * A list of bounded length.
 * @param options.key what no two entries may share, made from the value and from what stood there; of two entries
 *   that do, the later one is the error
 */
export function list<T>(
  item: Check<T>,
  options: { max: number; key?: (value: T, entry: unknown) => string },
): Check<T[]> {
  const expected = `a list of at most ${options.max} entries`;
  return (input, at, findings) => {
    if (!Array.isArray(input)) return wrongType(findings, at, input, expected);
    if (input.length > options.max) {
      return report(findings, at, { message: `the list has ${input.length} entries`, expected });
    }
    const values: T[] = [];
    const seen = new Map<string, number>();
    for (const [index, entry] of input.entries()) {
      const value = item(entry, [...at, index], findings);
      if (value === null) continue;
      const key = options.key?.(value, entry);
      const first = key === undefined ? undefined : seen.get(key);
      if (first !== undefined) {
        report(findings, [...at, index], {
          message: `the entry repeats entry ${first}`,
          expected: 'no entry twice',
          remedy: 'remove one of them',
        });
        continue;
      }
      if (key !== undefined) seen.set(key, index);
      values.push(value);
    }
    return values.length === input.length ? values : null;
  };
}

/** A map whose keys are the user's. The result is a Map, because `constructor` is a valid container name. */
export function mapOf<T>(
  key: Check<string>,
  value: Check<T>,
  options: { max: number },
): Check<ReadonlyMap<string, T>> {
  const expected = `a map of at most ${options.max} entries`;
  return (input, at, findings) => {
    if (!isObject(input)) return wrongType(findings, at, input, expected);
    const entries = Object.entries(input);
    if (entries.length > options.max) {
      return report(findings, at, { message: `the map has ${entries.length} entries`, expected });
    }
    const result = new Map<string, T>();
    for (const [name, entry] of entries) {
      const parsedName = key(name, [...at, name], findings);
      const parsed = value(entry, [...at, name], findings);
      if (parsedName !== null && parsed !== null) result.set(parsedName, parsed);
    }
    return result.size === entries.length ? result : null;
  };
}

/** An object of known fields; any other field is an error, so that a misspelt rule is never a silent one. */
export function object<R extends Fields, O extends Fields>(required: R, optional: O): Check<ObjectOf<R, O>> {
  const known = new Map<string, Check<unknown>>([...Object.entries(required), ...Object.entries(optional)]);
  const names = [...known.keys()].join(', ');
  return (input, at, findings) => {
    if (!isObject(input)) return wrongType(findings, at, input, `an object with the fields ${names}`);
    const errorsBefore = findings.errors.length;
    for (const name of Object.keys(required)) {
      if (Object.hasOwn(input, name) && input[name] !== undefined) continue;
      report(findings, [...at, name], { message: 'the field is missing', expected: 'a value' });
    }
    const result: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(input)) {
      if (value === undefined) continue;
      const check = known.get(name);
      if (check === undefined) {
        report(findings, [...at, name], { message: 'the field is unknown', expected: `one of ${names}` });
        if (findings.errors.length > MAX_ERRORS) break;
        continue;
      }
      const parsed = check(value, [...at, name], findings);
      if (parsed !== null) result[name] = parsed;
    }
    return findings.errors.length === errorsBefore ? (result as ObjectOf<R, O>) : null;
  };
}

/** A check whose value is made into another one. */
export function mapped<T, U>(check: Check<T>, map: (value: T) => U): Check<U> {
  return (input, at, findings) => {
    const value = check(input, at, findings);
    return value === null ? null : map(value);
  };
}

export function isObject(input: unknown): input is Record<string, unknown> {
  return typeof input === 'object' && input !== null && !Array.isArray(input);
}

function wrongType(findings: Findings, at: readonly PathSegment[], input: unknown, expected: string): null {
  return report(findings, at, { message: `${kindOf(input)} stands here`, expected });
}

function kindOf(input: unknown): string {
  if (input === null) return 'nothing (null)';
  if (Array.isArray(input)) return 'a list';
  switch (typeof input) {
    case 'object':
      return 'an object';
    case 'string':
      return `the text ${quote(input)}`;
    case 'number':
    case 'boolean':
      return `${input}`;
    default:
      return `a value of type ${typeof input}`;
  }
}

/** Counts code points, and only as far as needed. */
function exceeds(input: string, max: number): boolean {
  if (input.length <= max) return false;
  return input.length > 2 * max || Array.from(input).length > max;
}
