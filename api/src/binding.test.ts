import { describe, expect, it } from 'vitest';
import { readPolicyBinding } from './binding.ts';
import { POLICY_LABEL } from './keys.ts';

describe('readPolicyBinding', () => {
  const read = (value: string) => readPolicyBinding(new Map([[POLICY_LABEL, value]]));

  it('tells no label from an empty one', () => {
    expect(readPolicyBinding(new Map([['app', 'web']]))).toEqual({ kind: 'unlabelled' });
    expect(read('')).toEqual({ kind: 'empty' });
  });

  it.each(['web', 'deploy-web', 'a.b-c', '0', 'x'.repeat(63)])('reads %j', (name) => {
    expect(read(name)).toEqual({ kind: 'policy', policyName: name });
  });

  it.each(['Web', 'a_b', '-a', 'a.', 'x'.repeat(64), '../other', 'a/b', ' web', 'web\n', 'wéb', '\u202eweb'])(
    'refuses %j in words that are safe to print',
    (value) => {
      const binding = read(value);
      expect(binding).toMatchObject({ kind: 'invalid' });
      expect(binding.kind === 'invalid' && binding.message).toMatch(/^[ -~é]+$/);
    },
  );

  it('answers a label of a megabyte with a short message', () => {
    const binding = read('x'.repeat(1 << 20));
    expect(binding.kind === 'invalid' && binding.message.length).toBeLessThan(500);
  });
});
