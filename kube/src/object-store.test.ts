import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KubeObject, objectKey, splitKey, withoutManagedFields } from './kube-object.ts';
import { objectStore } from './object-store.ts';
import { collectionPath, objectPath } from './resource-path.ts';

const object = (name: string, uid: string, version: number, app = 'x'): KubeObject => ({
  metadata: { name, namespace: 'shop', uid, resourceVersion: String(version), labels: { app } },
});
const store = () =>
  objectStore<KubeObject, 'app'>({
    transform: withoutManagedFields,
    indexes: { app: ({ metadata }) => [metadata.labels?.['app'] ?? ''] },
  });
const brief = (changes: readonly { type: string; key: string }[]) =>
  changes.map(({ type, key }) => `${type} ${key}`);

describe('objectStore', () => {
  it('tells what changes, and nothing for what is the same', () => {
    const mine = store();
    expect(brief(mine.put(object('a', '1', 1)))).toEqual(['added shop/a']);
    expect(brief(mine.put(object('a', '1', 1)))).toEqual([]);
    expect(brief(mine.put(object('a', '1', 2)))).toEqual(['updated shop/a']);
    expect(brief(mine.put(object('a', '2', 3)))).toEqual(['deleted shop/a', 'added shop/a']);
    expect(brief(mine.remove(object('a', '2', 4)))).toEqual(['deleted shop/a']);
    expect(brief(mine.remove(object('a', '2', 4)))).toEqual([]);
  });

  it('drops managedFields and leaves the rest', () => {
    const mine = store();
    const whole = object('a', '1', 1);
    mine.put({ ...whole, metadata: { ...whole.metadata, managedFields: [{}] }, spec: 1 });
    expect(mine.get('shop/a')).toEqual({ ...whole, spec: 1 });
  });

  it('one that the transform refuses is told, and what was known of it stays', () => {
    const refused: string[] = [];
    const mine = objectStore<string>({
      transform: ({ metadata }) => {
        if (metadata.labels?.['app'] === 'bad') throw new Error('bad');
        return metadata.labels?.['app'] === 'none' ? undefined : metadata.name;
      },
      onRefused: ({ metadata }) => refused.push(metadata.name),
    });
    mine.put(object('a', '1', 1));
    expect(mine.put(object('a', '1', 2, 'bad'))).toEqual([]);
    expect(mine.get('shop/a')).toBe('a');
    expect(refused).toEqual(['a']);
    // Another object under the same name has nothing to do with the one that was known.
    expect(brief(mine.put(object('a', '2', 3, 'bad')))).toEqual(['deleted shop/a']);
    mine.put(object('b', '1', 4));
    expect(brief(mine.put(object('b', '1', 5, 'none')))).toEqual(['deleted shop/b']);
  });

  it('its indexes and changes are right after any sequence', () => {
    const operation = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      uid: fc.constantFrom('1', '2'),
      app: fc.constantFrom('x', 'y'),
      how: fc.constantFrom('put', 'remove', 'replace'),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), (operations) => {
        const mine = store();
        const model = new Map<string, KubeObject>();
        const told = new Map<string, KubeObject>();
        operations.forEach(({ name, uid, app, how }, index) => {
          const next = object(name, uid, index, app);
          if (how === 'replace') model.clear();
          if (how === 'remove') model.delete(objectKey(next));
          else model.set(objectKey(next), next);
          const changes =
            how === 'put'
              ? mine.put(next)
              : how === 'remove'
                ? mine.remove(next)
                : mine.replace([mine.prepare(next)]);
          for (const change of changes) {
            expect(told.has(change.key)).toBe(change.type !== 'added');
            if (change.type === 'deleted') told.delete(change.key);
            else told.set(change.key, change.value);
          }
        });
        expect(new Map(mine.entries())).toEqual(model);
        expect(told).toEqual(model);
        for (const app of ['x', 'y']) {
          const expected = [...model.values()].filter(({ metadata }) => metadata.labels?.['app'] === app);
          expect(new Set(mine.byIndex('app', app))).toEqual(new Set(expected));
        }
      }),
    );
  });
});

describe('keys and paths', () => {
  it('splitKey undoes objectKey', () => {
    expect(splitKey('shop/web')).toEqual({ namespace: 'shop', name: 'web' });
    expect(splitKey('node-1')).toEqual({ name: 'node-1' });
  });

  it('a name cannot lead to another path', () => {
    const resource = { group: 'g.io', version: 'v1', plural: 'things' };
    expect(collectionPath(resource)).toBe('/apis/g.io/v1/things');
    expect(objectPath({ resource, namespace: 'shop', name: 'a/../b?x', subresource: 'status' })).toBe(
      '/apis/g.io/v1/namespaces/shop/things/a%2F..%2Fb%3Fx/status',
    );
    for (const name of ['', '.', '..']) expect(() => objectPath({ resource, name })).toThrow('not the name');
  });
});
