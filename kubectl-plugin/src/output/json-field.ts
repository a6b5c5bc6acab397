import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';

/** What stands at a place in an object of the API, whatever its type; undefined where nothing does. */
export function fieldOf(json: unknown, ...path: readonly string[]): unknown {
  let value = json;
  for (const name of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** A text or a number as text; empty for everything else. */
export function textAt(json: unknown, ...path: readonly string[]): string {
  const value = fieldOf(json, ...path);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

export function numberAt(json: unknown, ...path: readonly string[]): number | undefined {
  const value = fieldOf(json, ...path);
  return typeof value === 'number' ? value : undefined;
}

export function listAt(json: unknown, ...path: readonly string[]): readonly unknown[] {
  const value = fieldOf(json, ...path);
  return Array.isArray(value) ? (value as unknown[]) : [];
}

export function recordAt(json: unknown, ...path: readonly string[]): Readonly<Record<string, unknown>> {
  const value = fieldOf(json, ...path);
  return isJsonObject(value) ? value : {};
}

/** An object's labels: those whose value is a text. */
export function labelsOf(object: KubeObject): ReadonlyMap<string, string> {
  return textsAt(object, 'metadata', 'labels');
}

export function textsAt(json: unknown, ...path: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(recordAt(json, ...path)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}
