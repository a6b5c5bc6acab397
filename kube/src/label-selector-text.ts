import {
  comparison,
  type LabelSelector,
  LabelSelectorError,
  type Requirement,
  requirement,
} from './label-selector.ts';

const MAX_CHARACTERS = 10_000;
const TOKEN = /\s*(?:([A-Za-z0-9][-A-Za-z0-9_./]*)|(==|!=|=|!|<|>|\(|\)|,))/y;
const SYMBOLS = new Set(['==', '!=', '=', '!', '<', '>', '(', ')', ',']);

/**
 * Reads the text form of flags and queries: `app=web,tier!=db,env in (test,prod),!legacy,cpus>4`. An empty text selects
 * everything.
 *
 * @throws LabelSelectorError
 */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = tokensOf(text);
  let position = 0;
  const peek = (): string | undefined => tokens[position];
  const take = (): string | undefined => tokens[position++];
  const word = (what: string): string => {
    const token = take();
    if (token === undefined || SYMBOLS.has(token)) throw expected(what, token);
    return token;
  };
  /** What follows `=` may be nothing at all. */
  const valueOrEmpty = (): string =>
    peek() === undefined || SYMBOLS.has(peek() ?? '') ? '' : (take() ?? '');

  function values(): string[] {
    if (take() !== '(') throw expected('"(" after in and notin', tokens[position - 1]);
    const found: string[] = [];
    for (;;) {
      found.push(valueOrEmpty());
      const token = take();
      if (token === ')') return found;
      if (token !== ',') throw expected('"," or ")" in a list', token);
    }
  }

  function next(): Requirement {
    if (peek() === '!') {
      take();
      return requirement(word('a key after "!"'), 'DoesNotExist', []);
    }
    const key = word('a key');
    const operator = peek();
    if (operator === undefined || operator === ',') return requirement(key, 'Exists', []);
    take();
    switch (operator) {
      case '=':
      case '==':
        return requirement(key, 'In', [valueOrEmpty()]);
      case '!=':
        return requirement(key, 'NotIn', [valueOrEmpty()]);
      case 'in':
        return requirement(key, 'In', values());
      case 'notin':
        return requirement(key, 'NotIn', values());
      case '>':
        return comparison(key, 'Gt', word('a number after ">"'));
      case '<':
        return comparison(key, 'Lt', word('a number after "<"'));
      default:
        throw expected('an operator (=, ==, !=, in, notin, <, >) after a key', operator);
    }
  }

  const selector: Requirement[] = [];
  while (peek() !== undefined) {
    selector.push(next());
    const token = take();
    if (token === undefined) return selector;
    if (token !== ',') throw expected('"," between conditions', token);
    if (peek() === undefined) throw expected('a condition after ","', undefined);
  }
  return selector;
}

/** The text form of a selector, such as a query takes. `parseLabelSelector` reads it back. */
export function formatLabelSelector(selector: LabelSelector): string {
  return selector
    .map((each) => {
      switch (each.operator) {
        case 'In':
          return each.values.length === 1
            ? `${each.key}=${each.values.join('')}`
            : `${each.key} in (${each.values.join(',')})`;
        case 'NotIn':
          return `${each.key} notin (${each.values.join(',')})`;
        case 'Exists':
          return each.key;
        case 'DoesNotExist':
          return `!${each.key}`;
        case 'Gt':
          return `${each.key}>${each.value}`;
        case 'Lt':
          return `${each.key}<${each.value}`;
      }
    })
    .join(',');
}

function tokensOf(text: string): string[] {
  if (text.length > MAX_CHARACTERS)
    throw new LabelSelectorError(`it has more than ${MAX_CHARACTERS} characters`);
  const tokens: string[] = [];
  const trimmed = text.trimEnd();
  TOKEN.lastIndex = 0;
  let position = 0;
  while (position < trimmed.length) {
    TOKEN.lastIndex = position;
    const match = TOKEN.exec(trimmed);
    const token = match?.[1] ?? match?.[2];
    if (token === undefined) {
      throw new LabelSelectorError(
        `unexpected ${JSON.stringify(trimmed.slice(position).trimStart().charAt(0))}`,
      );
    }
    tokens.push(token);
    position = TOKEN.lastIndex;
  }
  return tokens;
}

function expected(what: string, token: string | undefined): LabelSelectorError {
  return new LabelSelectorError(
    `expected ${what}, found ${token === undefined ? 'the end' : JSON.stringify(token)}`,
  );
}
