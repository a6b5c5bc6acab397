import { type KubeObject, objectKey } from './kube-object.ts';

/** One difference between what was known and what is. */
export type StoreChange<Value> =
  | { readonly type: 'added'; readonly key: string; readonly value: Value }
  | { readonly type: 'updated'; readonly key: string; readonly value: Value; readonly previous: Value }
  | { readonly type: 'deleted'; readonly key: string; readonly value: Value };

/** Names under which values are found; the names of one index by which a value is listed. */
export type Indexes<Value, IndexName extends string> = Readonly<
  Record<IndexName, (value: Value) => readonly string[]>
>;

export interface ObjectStoreOptions<Value, IndexName extends string> {
  /** What is kept of an object. One for which it throws, or answers undefined, is not in the store. */
  readonly transform: (object: KubeObject) => Value | undefined;
  readonly indexes?: Indexes<Value, IndexName>;
  /** Called for each object for which `transform` or an index threw; what was known of it stays. */
  readonly onRefused?: (object: KubeObject, error: unknown) => void;
}

/** What is known of all objects of one kind, by key. An object made anew under its old name is another one (uid). */
export interface ObjectStore<Value, IndexName extends string = never> {
  readonly size: number;
  get(key: string): Value | undefined;
  values(): IterableIterator<Value>;
  entries(): IterableIterator<[string, Value]>;
  byIndex(index: IndexName, name: string): Value[];
  /** Takes an object as it is now. */
  put(object: KubeObject): StoreChange<Value>[];
  /** Takes note that an object is gone. */
  remove(object: KubeObject): StoreChange<Value>[];
  /**
   * What {@link replace} will take of an object, which needs not be held until then. Nothing but that may be taken in
   * between.
   */
  prepare(object: KubeObject): PreparedObject<Value>;
  /** Takes all objects that there are; whatever else was known is gone. */
  replace(objects: Iterable<PreparedObject<Value>>): StoreChange<Value>[];
}

/** An object that is to be taken. */
export interface PreparedObject<Value> {
  readonly key: string;
  readonly outcome:
    | { readonly kind: 'unchanged' }
    | { readonly kind: 'transformed'; readonly entry: Entry<Value> | undefined }
    | { readonly kind: 'refused'; readonly object: KubeObject; readonly error: unknown };
}

interface Entry<Value> {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly value: Value;
  /** The names under which each index lists it. */
  readonly names: ReadonlyMap<string, readonly string[]>;
}

/** See {@link ObjectStore}. Not safe against changes of the values that it hands out: they are to be read only. */
export function objectStore<Value, IndexName extends string = never>(
  options: ObjectStoreOptions<Value, IndexName>,
): ObjectStore<Value, IndexName> {
  const { transform, onRefused } = options;
  const indexes = Object.entries(options.indexes ?? {}) as [IndexName, (value: Value) => readonly string[]][];
  const entries = new Map<string, Entry<Value>>();
  const listed = new Map<string, Map<string, Set<string>>>(indexes.map(([name]) => [name, new Map()]));

  function list(key: string, entry: Entry<Value>): void {
    for (const [index, names] of entry.names) {
      const byName = listed.get(index);
      for (const name of names) {
        const keys = byName?.get(name) ?? new Set();
        keys.add(key);
        byName?.set(name, keys);
      }
    }
  }

  function unlist(key: string, entry: Entry<Value>): void {
    for (const [index, names] of entry.names) {
      const byName = listed.get(index);
      for (const name of names) {
        const keys = byName?.get(name);
        keys?.delete(key);
        if (keys?.size === 0) byName?.delete(name);
      }
    }
  }

  function entryOf(object: KubeObject): Entry<Value> | undefined {
    const value = transform(object);
    if (value === undefined) return undefined;
    const names = new Map(indexes.map(([name, of]) => [name as string, of(value)]));
    const { uid, resourceVersion } = object.metadata;
    return { uid, resourceVersion, value, names };
  }

  function drop(key: string): StoreChange<Value>[] {
    const known = entries.get(key);
    if (known === undefined) return [];
    unlist(key, known);
    entries.delete(key);
    return [{ type: 'deleted', key, value: known.value }];
  }

  function prepare(object: KubeObject): PreparedObject<Value> {
    const key = objectKey(object);
    const { uid, resourceVersion } = object.metadata;
    const known = entries.get(key);
    const isSame = known !== undefined && known.uid === uid;
    if (isSame && resourceVersion !== undefined && known.resourceVersion === resourceVersion)
      return { key, outcome: { kind: 'unchanged' } };
    try {
      return { key, outcome: { kind: 'transformed', entry: entryOf(object) } };
    } catch (error) {
      return { key, outcome: { kind: 'refused', object, error } };
    }
  }

  function take({ key, outcome }: PreparedObject<Value>): StoreChange<Value>[] {
    if (outcome.kind === 'unchanged') return [];
    const known = entries.get(key);
    if (outcome.kind === 'refused') {
      const { object, error } = outcome;
      onRefused?.(object, error);
      // Nothing may be said of a new object by what was known of the one before it.
      return known?.uid === object.metadata.uid ? [] : drop(key);
    }
    const { entry: next } = outcome;
    if (next === undefined) return drop(key);
    const isSame = known !== undefined && known.uid === next.uid;
    const gone = isSame ? [] : drop(key);
    if (isSame) unlist(key, known);
    entries.set(key, next);
    list(key, next);
    const { value } = next;
    return isSame
      ? [{ type: 'updated', key, value, previous: known.value }]
      : [...gone, { type: 'added', key, value }];
  }

  return {
    get size() {
      return entries.size;
    },
    get: (key) => entries.get(key)?.value,
    *values() {
      for (const { value } of entries.values()) yield value;
    },
    *entries() {
      for (const [key, { value }] of entries) yield [key, value];
    },
    byIndex(index, name) {
      const keys = listed.get(index)?.get(name) ?? [];
      return [...keys].flatMap((key) => {
        const entry = entries.get(key);
        return entry === undefined ? [] : [entry.value];
      });
    },
    put: (object) => take(prepare(object)),
    prepare,
    remove: (object) => drop(objectKey(object)),
    replace(objects) {
      const present = new Set<string>();
      const changes: StoreChange<Value>[] = [];
      for (const object of objects) {
        present.add(object.key);
        changes.push(...take(object));
      }
      const absent = [...entries.keys()].filter((key) => !present.has(key));
      return [...absent.flatMap(drop), ...changes];
    },
  };
}
