import { nodesOf, type SchemaNode, type ValidationRule } from './custom-resource.ts';

const VALUE_KEYWORDS = [
  'enum',
  'format',
  'maxItems',
  'maxLength',
  'maxProperties',
  'maximum',
  'minItems',
  'minLength',
  'minimum',
  'pattern',
  'required',
];
const COMBINATORS = ['allOf', 'anyOf', 'oneOf', 'not'];
const KEYWORDS = new Set([
  ...VALUE_KEYWORDS,
  ...COMBINATORS,
  'additionalProperties',
  'default',
  'description',
  'items',
  'properties',
  'type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
]);
const SCALARS = ['string', 'integer', 'number', 'boolean'];
const MAX_MESSAGE_CHARACTERS = 2048;

/**
 * Why an API server would not take a schema as structural, and where a tenant's value is not bounded.
 * @see the rules for structural schemas in the Kubernetes documentation of CustomResourceDefinitions
 */
export function structuralProblems(root: SchemaNode): string[] {
  return [...nodesOf(root)].flatMap(([path, node]) =>
    [...problemsOf(node, path)].map((problem) => `${path}: ${problem}`),
  );
}

function* problemsOf(node: SchemaNode, path: string): Generator<string> {
  const { type } = node;
  for (const keyword of Object.keys(node)) {
    if (!KEYWORDS.has(keyword)) yield `keyword ${keyword} is forbidden or unknown`;
  }
  if (type === undefined) yield 'no type';
  else if (![...SCALARS, 'object', 'array'].includes(type)) yield `type ${type} is unknown`;
  if (type === 'array' && !node.items) yield 'an array without items';
  if (node.items && type !== 'array') yield 'items outside an array';
  if ((node.properties || node.additionalProperties) && type !== 'object') yield 'fields outside an object';
  if (node.properties && node.additionalProperties) yield 'properties beside additionalProperties';
  if (typeof node.additionalProperties === 'boolean') yield 'additionalProperties without a schema';
  for (const name of (node['required'] ?? []) as string[]) {
    if (!node.properties?.[name]) yield `required field ${name} is not a property`;
  }
  const mapType = node['x-kubernetes-map-type'];
  if (mapType !== undefined && (type !== 'object' || !['atomic', 'granular'].includes(mapType as string)))
    yield 'a map type outside an object, or an unknown one';
  yield* combinatorProblems(node);
  yield* listProblems(node);
  yield* ruleProblems(node);
  yield* unbounded(node, path);
}

/** A branch may narrow values; types, defaults and fields belong outside. */
function* combinatorProblems(node: SchemaNode): Generator<string> {
  for (const combinator of COMBINATORS) {
    const value = node[combinator];
    for (const branch of value === undefined ? [] : [value].flat()) {
      for (const keyword of Object.keys(branch as SchemaNode)) {
        if (!VALUE_KEYWORDS.includes(keyword)) yield `${keyword} inside ${combinator}`;
      }
    }
  }
}

function* listProblems(node: SchemaNode): Generator<string> {
  const listType = node['x-kubernetes-list-type'];
  const keys = node['x-kubernetes-list-map-keys'] as string[] | undefined;
  if (listType === undefined && keys === undefined) {
    if (node.type === 'array') yield 'no x-kubernetes-list-type';
    return;
  }
  if (node.type !== 'array') yield 'a list type outside an array';
  if (!['atomic', 'set', 'map'].includes(listType as string)) yield 'an unknown list type';
  if ((listType === 'map') !== (keys !== undefined))
    yield 'list-map-keys belong to the list type map, and to no other';
  if (listType === 'set' && !SCALARS.includes(node.items?.type ?? '')) yield 'a set of what is not scalar';
  for (const key of keys ?? []) {
    const property = node.items?.properties?.[key];
    if (!SCALARS.includes(property?.type ?? '')) yield `map key ${key} is not a scalar field`;
    const isRequired = (node.items?.['required'] as string[] | undefined)?.includes(key) ?? false;
    if (!isRequired && property?.['default'] === undefined)
      yield `map key ${key} is neither required nor defaulted`;
  }
}

function* ruleProblems(node: SchemaNode): Generator<string> {
  for (const { rule, message } of (node['x-kubernetes-validations'] ?? []) as ValidationRule[]) {
    if (rule.trim() === '') yield 'an empty rule';
    if (message === undefined || message.trim() === '' || message.includes('\n'))
      yield `no one-line message: ${rule}`;
    else if (message.length > MAX_MESSAGE_CHARACTERS) yield `message too long: ${rule}`;
  }
}

/** The API server bounds apiVersion, kind and metadata itself. */
function* unbounded(node: SchemaNode, path: string): Generator<string> {
  if (['.apiVersion', '.kind', '.metadata'].includes(path)) return;
  if (node.type === 'string' && !('maxLength' in node || 'enum' in node || node['format'] === 'date-time')) {
    yield 'text without maxLength';
  }
  if (node.type === 'array' && !('maxItems' in node)) yield 'a list without maxItems';
  if (node.additionalProperties && !('maxProperties' in node)) yield 'a map without maxProperties';
  if (node.type === 'object' && !node.properties && !node.additionalProperties)
    yield 'an object without fields';
}
