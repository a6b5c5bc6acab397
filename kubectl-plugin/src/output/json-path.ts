import { quote } from '@runtime-enforcer/api/field-error';
import { isJsonObject } from '@runtime-enforcer/kube/kube-object';
import { UsageError } from '../plugin-error.ts';

/** A kubectl template: text, values, and what is repeated for each value. */
type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly path: readonly Step[] }
  | { readonly kind: 'range'; readonly path: readonly Step[]; readonly body: readonly Part[] };

type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'all' }
  | { readonly kind: 'anywhere'; readonly name: string }
  | { readonly kind: 'slice'; readonly from: number | undefined; readonly to: number | undefined }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'filter'; readonly filter: Filter };

interface Filter {
  readonly path: readonly Step[];
  readonly operator: '==' | '!=' | '<' | '<=' | '>' | '>=' | 'exists';
  readonly value: string | number | boolean;
}

const MAX_TEMPLATE_CHARACTERS = 10_000;
const FIELD = /^\.((?:\\.|[^.[\]{}()\s\\'"?@*,:=<>!])+)/;
const FILTER =
  /^\[\?\(@((?:\[[^\]]*\]|[^[\]()=<>!\s])*)\s*(?:(==|!=|<=|>=|<|>)\s*("[^"]*"|'[^']*'|[^)\s]+))?\s*\)\]/;
const SUBSCRIPT = /^\[(?:(\*)|'([^']*)'|"([^"]*)"|(-?\d+)|(-?\d*):(-?\d*))\]/;

/**
 * Fills in a template as `kubectl -o jsonpath` has it: `{.items[*].metadata.name}`, `{range .items[*]}…{end}`,
 * filters such as `[?(@.type=="Ready")]`, slices, `..name`, and texts in quotes. Missing fields yield nothing.
 *
 * @param show makes a value of unknown origin safe to print
 * @throws UsageError for a template that cannot be read
 */
export function fillJsonPath(template: string, data: unknown, show: (text: string) => string): string {
  return evaluate(parseTemplate(template), data, show);
}

function evaluate(parts: readonly Part[], data: unknown, show: (text: string) => string): string {
  return parts
    .map((part) => {
      switch (part.kind) {
        case 'text':
          return part.text;
        case 'value':
          return select(part.path, [data])
            .map((value) => show(printed(value)))
            .join(' ');
        case 'range':
          return select(part.path, [data])
            .map((value) => evaluate(part.body, value, show))
            .join('');
      }
    })
    .join('');
}

function printed(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function select(path: readonly Step[], roots: readonly unknown[]): readonly unknown[] {
  let values = roots;
  for (const step of path) values = values.flatMap((value) => [...next(step, value)]);
  return values;
}

function next(step: Step, value: unknown): readonly unknown[] {
  switch (step.kind) {
    case 'field':
      return isJsonObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
    case 'all':
      return Array.isArray(value) ? (value as unknown[]) : isJsonObject(value) ? Object.values(value) : [];
    case 'index':
      return Array.isArray(value) ? (value as unknown[]).slice(step.index).slice(0, 1) : [];
    case 'slice':
      return Array.isArray(value) ? (value as unknown[]).slice(step.from, step.to) : [];
    case 'anywhere':
      return descendants(value).flatMap((each) => [...next({ kind: 'field', name: step.name }, each)]);
    case 'filter':
      return next({ kind: 'all' }, value).filter((each) => passes(step.filter, each));
  }
}

function descendants(value: unknown): unknown[] {
  return [value, ...next({ kind: 'all' }, value).flatMap(descendants)];
}

function passes({ path, operator, value }: Filter, candidate: unknown): boolean {
  const [found] = select(path, [candidate]);
  if (operator === 'exists') return found !== undefined;
  if (operator === '==') return found === value;
  if (operator === '!=') return found !== undefined && found !== value;
  if (typeof found !== typeof value || (typeof found !== 'number' && typeof found !== 'string')) return false;
  switch (operator) {
    case '<':
      return found < value;
    case '<=':
      return found <= value;
    case '>':
      return found > value;
    case '>=':
      return found >= value;
  }
}

function parseTemplate(template: string): readonly Part[] {
  if (template.length > MAX_TEMPLATE_CHARACTERS) {
    throw new UsageError(`the jsonpath template has more than ${MAX_TEMPLATE_CHARACTERS} characters`);
  }
  // As kubectl has it, one path alone may be written without braces.
  const text =
    template.includes('{') || template === '' ? template : `{${template.replace(/^(?![.[$@])/, '.')}}`;
  const open: { readonly path: readonly Step[]; readonly parts: Part[] }[] = [{ path: [], parts: [] }];
  const current = () => open.at(-1)?.parts ?? [];
  let position = 0;
  while (position < text.length) {
    const brace = text.indexOf('{', position);
    const end = brace < 0 ? text.length : brace;
    if (end > position) current().push({ kind: 'text', text: unescape(text.slice(position, end)) });
    if (brace < 0) break;
    const close = closingBrace(text, brace);
    const inner = text.slice(brace + 1, close).trim();
    position = close + 1;
    if (inner === 'end') {
      const range = open.pop();
      if (range === undefined || open.length === 0) throw invalid('{end} without {range}');
      current().push({ kind: 'range', path: range.path, body: range.parts });
    } else if (/^range\s/.test(inner)) {
      open.push({ path: parsePath(inner.slice('range'.length).trim()), parts: [] });
    } else if (/^(["']).*\1$/s.test(inner)) {
      current().push({ kind: 'text', text: unescape(inner.slice(1, -1)) });
    } else {
      current().push({ kind: 'value', path: parsePath(inner) });
    }
  }
  if (open.length > 1) throw invalid('{range} without {end}');
  return current();
}

function closingBrace(text: string, from: number): number {
  let quoted: string | undefined;
  for (let at = from + 1; at < text.length; at++) {
    const character = text.charAt(at);
    if (quoted !== undefined) {
      if (character === '\\') at++;
      else if (character === quoted) quoted = undefined;
    } else if (character === '"' || character === "'") {
      quoted = character;
    } else if (character === '}') {
      return at;
    }
  }
  throw invalid(`"{" without "}" in ${quote(text.slice(from))}`);
}

function parsePath(text: string): readonly Step[] {
  const steps: Step[] = [];
  let rest = text.replace(/^[$@]/, '');
  while (rest !== '' && rest !== '.') {
    const [step, length] = parseStep(rest, text);
    steps.push(step);
    rest = rest.slice(length);
  }
  return steps;
}

function parseStep(rest: string, whole: string): readonly [Step, number] {
  if (rest.startsWith('.*')) return [{ kind: 'all' }, 2];
  if (rest.startsWith('.[')) {
    const [step, length] = parseStep(rest.slice(1), whole);
    return [step, length + 1];
  }
  const isDeep = rest.startsWith('..');
  const field = FIELD.exec(isDeep ? rest.slice(1) : rest);
  if (field !== null) {
    const [matched, name = ''] = field;
    const kind = isDeep ? 'anywhere' : 'field';
    return [{ kind, name: name.replaceAll(/\\(.)/g, '$1') }, matched.length + (isDeep ? 1 : 0)];
  }
  const filter = FILTER.exec(rest);
  if (filter !== null) {
    const [matched, path = '', operator, literal = ''] = filter;
    const parsed: Filter = {
      path: parsePath(path),
      operator: (operator as Filter['operator'] | undefined) ?? 'exists',
      value: parseLiteral(literal),
    };
    return [{ kind: 'filter', filter: parsed }, matched.length];
  }
  const subscript = SUBSCRIPT.exec(rest);
  if (subscript === null) throw invalid(`${quote(rest)} in ${quote(whole)}`);
  const [matched, all, single, double, index, from, to] = subscript;
  const bound = (number: string | undefined) =>
    number === undefined || number === '' ? undefined : Number(number);
  if (all !== undefined) return [{ kind: 'all' }, matched.length];
  if (index !== undefined) return [{ kind: 'index', index: Number(index) }, matched.length];
  const name = single ?? double;
  if (name !== undefined) return [{ kind: 'field', name }, matched.length];
  return [{ kind: 'slice', from: bound(from), to: bound(to) }, matched.length];
}

function parseLiteral(text: string): string | number | boolean {
  if (/^(["']).*\1$/.test(text)) return text.slice(1, -1);
  if (text === 'true' || text === 'false') return text === 'true';
  const number = Number(text);
  return text !== '' && Number.isFinite(number) ? number : text;
}

function unescape(text: string): string {
  return text.replaceAll('\\n', '\n').replaceAll('\\t', '\t');
}

function invalid(what: string): UsageError {
  return new UsageError(`the jsonpath template cannot be read: ${what}`);
}
