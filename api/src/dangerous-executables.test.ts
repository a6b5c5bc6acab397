import { describe, expect, it } from 'vitest';
import { dangerOf } from './dangerous-executables.ts';
import table from './dangerous-executables.json' with { type: 'json' };

describe('dangerOf', () => {
  it.each([
    ['/bin/bash', 'shell'],
    ['/usr/bin/python3.11', 'interpreter'],
    ['/usr/bin/python3', 'interpreter'],
    ['/usr/local/bin/php8', 'interpreter'],
    ['/sbin/apk', 'packageManager'],
    ['/usr/bin/curl', 'transfer'],
    ['/lib64/ld-linux-x86-64.so.2', 'runsOthers'],
    ['/lib/ld-musl-x86_64.so.1', 'runsOthers'],
    ['/usr/bin/gcc', 'compiler'],
  ])('%s is of the class %s', (path, expected) => {
    expect(dangerOf(path)?.class).toBe(expected);
  });

  it.each([
    '/usr/bin/ls',
    '/app/server',
    '/usr/bin/bashful',
    '/usr/bin/sh1',
    '/opt/constructor',
    '/python/x',
  ])('%s is not known', (path) => {
    expect(dangerOf(path)).toBeUndefined();
  });

  it('has a class and a source for every entry, and each once', () => {
    const names = table.executables.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const entry of table.executables) {
      expect(Object.keys(table.classes)).toContain(entry.class);
      expect(URL.canParse(entry.source)).toBe(true);
    }
  });
});
