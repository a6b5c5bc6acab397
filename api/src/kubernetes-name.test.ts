import { describe, expect, it } from 'vitest';
import { isDnsLabel, isDnsSubdomain, objectNameError } from './kubernetes-name.ts';

describe('names', () => {
  it.each(['a', '0', 'a-b', 'a--b', 'x'.repeat(63)])('%j is a label and a subdomain', (name) => {
    expect([isDnsLabel(name), isDnsSubdomain(name)]).toEqual([true, true]);
  });

  it.each(['a.b', 'x'.repeat(64), `${'ab.'.repeat(84)}z`])('%j is a subdomain only', (name) => {
    expect([isDnsLabel(name), isDnsSubdomain(name)]).toEqual([false, true]);
  });

  it.each(['', '-', '-a', 'a-', 'A', 'a_b', 'a..b', '.a', 'a.', 'a.-b', 'a/b', 'ä', 'a\n', 'x'.repeat(254)])(
    '%j is neither',
    (name) => {
      expect([isDnsLabel(name), isDnsSubdomain(name)]).toEqual([false, false]);
      expect(objectNameError(name, ['metadata', 'name'])).toMatchObject({ path: 'metadata.name' });
    },
  );

  it('answers hostile names quickly', () => {
    const started = performance.now();
    for (const name of ['a-'.repeat(100_000), 'a.'.repeat(126) + '-', 'a'.repeat(1_000_000)])
      isDnsSubdomain(name);
    isDnsSubdomain(`${'a'.repeat(252)}!`);
    isDnsSubdomain(`${'a-'.repeat(126)}!`);
    expect(performance.now() - started).toBeLessThan(1000);
  });
});
