import { isJsonObject } from './kube-object.ts';

/** One condition on one label. All of a selector's conditions must hold. */
export type Requirement =
  | { readonly key: string; readonly operator: 'In' | 'NotIn'; readonly values: readonly string[] }
  | { readonly key: string; readonly operator: 'Exists' | 'DoesNotExist' }
  /** The label is a whole number greater, or less, than this one. */
  | { readonly key: string; readonly operator: 'Gt' | 'Lt'; readonly value: bigint };

/** Conditions on an object's labels; none at all selects everything. */
export type LabelSelector = readonly Requirement[];

/** A text or object that is no selector, and what is wrong with it. */
export class LabelSelectorError extends Error {
  constructor(message: string) {
    super(`not a label selector: ${message}`);
    this.name = 'LabelSelectorError';
  }
}

const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const MAX_NAME_CHARACTERS = 63;
const MAX_PREFIX_CHARACTERS = 253;
const MAX_SHOWN_CHARACTERS = 80;
const WHOLE_NUMBER = /^[+-]?[0-9]{1,19}$/;

/** Whether labels meet every condition of a selector. */
export function matchesLabels(
  selector: LabelSelector,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  return selector.every((requirement) => {
    const { key } = requirement;
    // A label may be named like a member of every object.
    const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
    switch (requirement.operator) {
      case 'In':
        return value !== undefined && requirement.values.includes(value);
      case 'NotIn':
        return value === undefined || !requirement.values.includes(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      case 'Gt':
        return value !== undefined && WHOLE_NUMBER.test(value) && BigInt(plain(value)) > requirement.value;
      case 'Lt':
        return value !== undefined && WHOLE_NUMBER.test(value) && BigInt(plain(value)) < requirement.value;
    }
  });
}

/**
 * Reads the object form, as in a Deployment's `spec.selector`.
 *
 * @throws LabelSelectorError
 */
export function labelSelectorOf(json: unknown): LabelSelector {
  if (!isJsonObject(json))
    throw new LabelSelectorError('expected an object with matchLabels or matchExpressions');
  const { matchLabels = {}, matchExpressions = [] } = json;
  if (!isJsonObject(matchLabels)) throw new LabelSelectorError('matchLabels must be an object');
  if (!Array.isArray(matchExpressions)) throw new LabelSelectorError('matchExpressions must be a list');
  const equal = Object.entries(matchLabels).map(([key, value]) =>
    requirement(key, 'In', typeof value === 'string' ? [value] : undefined),
  );
  return [...equal, ...(matchExpressions as unknown[]).map(expression)];
}

function expression(json: unknown): Requirement {
  if (!isJsonObject(json) || typeof json['key'] !== 'string') {
    throw new LabelSelectorError('an expression needs a key');
  }
  const { key, operator, values } = json;
  const texts =
    Array.isArray(values) && values.every((value) => typeof value === 'string') ? values : undefined;
  switch (operator) {
    case 'In':
    case 'NotIn':
      return requirement(key, operator, texts);
    case 'Exists':
    case 'DoesNotExist':
      if (values !== undefined && texts?.length !== 0)
        throw new LabelSelectorError(`${operator} takes no values`);
      return requirement(key, operator, []);
    default:
      throw new LabelSelectorError('the operator must be In, NotIn, Exists or DoesNotExist');
  }
}

/** @throws LabelSelectorError for a key, or a value, that no label can have, and for a set without values */
export function requirement(
  key: string,
  operator: Exclude<Requirement['operator'], 'Gt' | 'Lt'>,
  values: readonly string[] | undefined,
): Requirement {
  requireKey(key);
  if (operator === 'Exists' || operator === 'DoesNotExist') return { key, operator };
  if (values === undefined || values.length === 0) {
    throw new LabelSelectorError(`${show(key)} needs a list of values, each a text`);
  }
  for (const value of values) {
    if (value !== '' && (value.length > MAX_NAME_CHARACTERS || !NAME.test(value))) {
      throw new LabelSelectorError(`no label has the value ${show(value)}`);
    }
  }
  return { key, operator, values };
}

/** @throws LabelSelectorError when the text is no whole number */
export function comparison(key: string, operator: 'Gt' | 'Lt', text: string): Requirement {
  requireKey(key);
  if (!WHOLE_NUMBER.test(text)) throw new LabelSelectorError(`${show(text)} is not a whole number`);
  return { key, operator, value: BigInt(plain(text)) };
}

/** BigInt takes no plus sign. */
function plain(number: string): string {
  return number.startsWith('+') ? number.slice(1) : number;
}

function requireKey(key: string): void {
  const slash = key.indexOf('/');
  const [prefix, name] = slash < 0 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)];
  const isPrefix = prefix === undefined || (prefix.length <= MAX_PREFIX_CHARACTERS && PREFIX.test(prefix));
  if (!isPrefix || name.length > MAX_NAME_CHARACTERS || !NAME.test(name)) {
    throw new LabelSelectorError(`${show(key)} is not the key of a label`);
  }
}

function show(text: string): string {
  return JSON.stringify(
    text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text,
  );
}
