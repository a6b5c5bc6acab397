import { readFileSync } from 'node:fs';
import { Environment } from '@marcbachmann/cel-js';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { isObject } from '../schema.ts';

/** A node of a CRD's openAPIV3Schema. */
export interface SchemaNode {
  readonly [keyword: string]: unknown;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: SchemaNode;
  readonly items?: SchemaNode;
}

export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
}

const CRD_FOLDER = new URL('../../../charts/runtime-enforcer/templates/crd/', import.meta.url);
const environment = new Environment({ unlistedVariablesAreDyn: true });

export function readCrd(plural: string): { readonly text: string; readonly crd: CustomResourceDefinition } {
  const text = readFileSync(new URL(`${plural}.yaml`, CRD_FOLDER), 'utf8');
  return { text, crd: parse(text) as CustomResourceDefinition };
}

export interface CustomResourceDefinition {
  readonly metadata: { readonly name: string; readonly annotations: Readonly<Record<string, string>> };
  readonly spec: {
    readonly group: string;
    readonly scope: string;
    readonly names: Readonly<Record<string, unknown>>;
    readonly versions: readonly [CrdVersion];
  };
}

export interface CrdVersion {
  readonly name: string;
  readonly schema: { readonly openAPIV3Schema: SchemaNode };
  readonly subresources: unknown;
  readonly additionalPrinterColumns?: readonly unknown[];
}

/** Every schema node below (and with) one, and the path to it; not those of allOf, anyOf, oneOf and not. */
export function* nodesOf(node: SchemaNode, path = ''): Generator<readonly [string, SchemaNode]> {
  yield [path, node];
  for (const [name, property] of Object.entries(node.properties ?? {}))
    yield* nodesOf(property, `${path}.${name}`);
  if (node.additionalProperties) yield* nodesOf(node.additionalProperties, `${path}.*`);
  if (node.items) yield* nodesOf(node.items, `${path}[]`);
}

/**
 * What an API server with strict field validation answers to an object of this schema: the messages of what it
 * refuses, none if it accepts. An independent reading of the CRD, to hold the product's own validation against.
 */
export function admissionOf(schema: SchemaNode): (object: unknown) => readonly string[] {
  const ajv = new Ajv({
    strict: false,
    useDefaults: true,
    formats: { 'date-time': isDateTime, int32: true, int64: true },
  });
  const isValid = ajv.compile(withoutUnknownFields(schema));
  return (object) => {
    const defaulted = withoutNulls(object);
    if (!isValid(defaulted)) return [ajv.errorsText(isValid.errors)];
    return [...brokenRules(schema, defaulted)];
  };
}

/** The API server drops a field, or a map's entry, that is null. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(kept.map(([name, field]) => [name, withoutNulls(field)]));
}

function withoutUnknownFields(schema: SchemaNode): SchemaNode {
  const { properties, additionalProperties, items } = schema;
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, node]) => [name, withoutUnknownFields(node)]),
      ),
      additionalProperties: false,
    }),
    ...(additionalProperties && { additionalProperties: withoutUnknownFields(additionalProperties) }),
    ...(items && { items: withoutUnknownFields(items) }),
  } as SchemaNode;
}

function* brokenRules(schema: SchemaNode, value: unknown): Generator<string> {
  for (const { rule, message } of (schema['x-kubernetes-validations'] ?? []) as ValidationRule[]) {
    if (environment.evaluate(rule, { self: celValue(value) }) !== true) yield message ?? rule;
  }
  if (Array.isArray(value) && schema.items) {
    const keys = value.map((entry: unknown) => listKey(schema, entry));
    if (schema['x-kubernetes-list-type'] !== 'atomic' && new Set(keys).size < keys.length)
      yield 'Duplicate value';
    for (const entry of value) yield* brokenRules(schema.items, entry);
  }
  if (!isObject(value)) return;
  for (const [name, field] of Object.entries(value)) {
    const properties = schema.properties ?? {};
    const node = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
    if (node) yield* brokenRules(node, field);
  }
}

/** The interpreter asks an object for its constructor, which may be a container's name: it gets maps. */
function celValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(celValue);
  if (!isObject(value)) return value;
  return new Map(Object.entries(value).map(([name, field]) => [name, celValue(field)]));
}

function listKey(schema: SchemaNode, entry: unknown): string {
  const keys = schema['x-kubernetes-list-map-keys'] as string[] | undefined;
  return JSON.stringify(keys && isObject(entry) ? keys.map((key) => entry[key]) : entry);
}

function isDateTime(text: string): boolean {
  return (
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
  );
}
