import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RulesByContainer } from './container-rules.ts';
import type { ExecutablePath } from './executable-path.ts';
import { allowPaths, compareRules, denyPaths } from './rule-changes.ts';

const paths = (...texts: string[]) => texts as ExecutablePath[];
const rules = (lists: Readonly<Record<string, readonly string[]>>): RulesByContainer =>
  new Map(
    Object.entries(lists).map(([name, allowed]) => [
      name,
      { executables: { allowed: paths(...allowed), otherMountNamespaces: 'deny' as const } },
    ]),
  );

describe('allowPaths', () => {
  it('appends what is missing and keeps the order', () => {
    const result = allowPaths(rules({ app: ['/b', '/a'] }), 'app', paths('/c', '/a', '/c'));
    expect(result).toEqual({ ok: true, rules: rules({ app: ['/b', '/a', '/c'] }), changed: ['/c'] });
  });

  it('refuses a container that is not named, unless it may be added', () => {
    expect(allowPaths(rules({}), 'app', paths('/a'))).toEqual({ ok: false, refusal: 'noRules' });
    expect(allowPaths(rules({ x: [] }), 'app', paths('/a'))).toEqual({
      ok: false,
      refusal: 'unknownContainer',
    });
    expect(allowPaths(rules({ x: [] }), 'app', paths('/a'), 'add')).toEqual({
      ok: true,
      rules: rules({ x: [], app: ['/a'] }),
      changed: ['/a'],
    });
  });

  it('refuses what no policy can hold', () => {
    const full = Array.from({ length: 1000 }, (_, index) => `/p${index}`);
    expect(allowPaths(rules({ app: full }), 'app', paths('/p1')).ok).toBe(true);
    expect(allowPaths(rules({ app: full }), 'app', paths('/new'))).toEqual({
      ok: false,
      refusal: 'tooManyPaths',
    });
    const many = Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`c${index}`, []]));
    expect(allowPaths(rules(many), 'app', paths('/a'), 'add')).toEqual({
      ok: false,
      refusal: 'tooManyContainers',
    });
  });
});

describe('denyPaths', () => {
  it('takes away what is there, and says what that was', () => {
    const result = denyPaths(rules({ app: ['/b', '/a'] }), 'app', paths('/a', '/x'));
    expect(result).toEqual({ ok: true, rules: rules({ app: ['/b'] }), changed: ['/a'] });
  });

  it('refuses a container that is not named', () => {
    expect(denyPaths(rules({ x: [] }), 'app', [])).toEqual({ ok: false, refusal: 'unknownContainer' });
  });
});

describe('compareRules', () => {
  it('tells containers and paths that only one side has', () => {
    const from = rules({ app: ['/a', '/b'], gone: ['/x'], same: ['/s'] });
    const to = rules({ app: ['/b', '/c'], new: [], same: ['/s'] });
    expect(compareRules(from, to)).toEqual([
      { containerName: 'app', container: 'both', added: ['/c'], removed: ['/a'], common: 1 },
      { containerName: 'gone', container: 'removed', added: [], removed: ['/x'], common: 0 },
      { containerName: 'new', container: 'added', added: [], removed: [], common: 0 },
    ]);
  });

  it('tells another answer to other mount namespaces', () => {
    const from = rules({ app: ['/a'] });
    const to: RulesByContainer = new Map([
      ['app', { executables: { allowed: paths('/a'), otherMountNamespaces: 'unchecked' } }],
    ]);
    expect(compareRules(from, to)).toMatchObject([{ otherMountNamespaces: 'unchecked', common: 1 }]);
  });

  it('finds nothing between a set of rules and itself, and allow undoes deny', () => {
    const list = fc.uniqueArray(fc.constantFrom('/a', '/b', '/c', '/d'));
    fc.assert(
      fc.property(list, list, (before, changed) => {
        const start = rules({ app: before });
        expect(compareRules(start, start)).toEqual([]);
        const denied = denyPaths(start, 'app', paths(...changed));
        if (!denied.ok) throw new Error(denied.refusal);
        const again = allowPaths(denied.rules, 'app', denied.changed);
        expect(again.ok && compareRules(start, again.rules)).toEqual([]);
      }),
    );
  });
});
