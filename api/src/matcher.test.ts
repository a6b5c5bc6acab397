import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExecutableKind } from './executable-path.ts';
import { decide, type ExecAttempt } from './matcher.ts';
import { parseWorkloadPolicy, type WorkloadPolicySpec } from './workload-policy.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

function policyOf(spec: Record<string, unknown>): WorkloadPolicySpec {
  const parsed = parseWorkloadPolicy({
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { name: 'web' },
    spec: { mode: 'protect', ...spec },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.value.spec;
}

const rules = (allowed: string[], more = {}) => ({
  rulesByContainer: { app: { executables: { allowed, ...more } } },
});
const attempt = (path: string, more: Partial<ExecAttempt> = {}): ExecAttempt => ({
  container: 'app',
  path: bytes(path),
  kind: 'file',
  mountNamespace: 'own',
  ...more,
});
const violation = (reason: string, action = 'protect') => ({ outcome: 'violation', action, reason });

describe('decide', () => {
  const policy = policyOf(rules(['/usr/bin/ls', String.raw`/opt/\xff`, '/opt/é']));

  it.each([
    ['/usr/bin/ls', { outcome: 'allowed' }],
    ['/opt/é', { outcome: 'allowed' }],
    ['/usr/bin/lsx', violation('Unlisted')],
    ['/usr/bin/l', violation('Unlisted')],
    ['/usr/bin/LS', violation('Unlisted')],
    ['/usr/bin/ls/', violation('Unlisted')],
    ['/usr/bin//ls', violation('Unlisted')],
    ['/opt/e\u0301', violation('Unlisted')],
    ['/usr/bin/ls (deleted)', violation('Unlisted')],
    ['/usr/bin/ls\0', violation('Unlisted')],
    [`/${'a'.repeat(4095)}`, violation('TooLong')],
    ['', violation('Unresolved')],
    ['usr/bin/ls', violation('Unresolved')],
  ])('answers %j', (path, decision) => {
    expect(decide(policy, attempt(path))).toEqual(decision);
  });

  it('compares bytes that are not UTF-8', () => {
    const path = (byte: number) => Uint8Array.from([...bytes('/opt/'), byte]);
    expect(decide(policy, attempt('', { path: path(0xff) }))).toEqual({ outcome: 'allowed' });
    expect(decide(policy, attempt('', { path: path(0xfe) }))).toEqual(violation('Unlisted'));
  });

  it.each<[ExecutableKind, string]>([
    ['deleted', 'Unlinked'],
    ['memfd', 'Memfd'],
    ['foreignMount', 'ForeignMount'],
  ])('never allows a %s, whatever path it shows', (kind, reason) => {
    expect(decide(policy, attempt('/usr/bin/ls', { kind }))).toEqual(violation(reason));
  });

  it('denies another mount namespace, unless the rules leave those unchecked', () => {
    const elsewhere = attempt('/usr/bin/ls', { mountNamespace: 'other' });
    expect(decide(policy, elsewhere)).toEqual(violation('OtherMountNamespace'));
    const unchecked = policyOf(rules(['/usr/bin/ls'], { otherMountNamespaces: 'unchecked' }));
    expect(decide(unchecked, elsewhere)).toEqual({ outcome: 'unchecked' });
    expect(decide(unchecked, attempt('/bin/sh'))).toEqual(violation('Unlisted'));
  });

  it('monitors what it would deny', () => {
    const monitored = policyOf({ ...rules([]), mode: 'monitor' });
    expect(decide(monitored, attempt('/bin/sh'))).toEqual(violation('Unlisted', 'monitor'));
  });

  it.each([{}, { executables: {} }, { executables: { allowed: [] } }])('allows nothing to %j', (empty) => {
    expect(decide(policyOf({ rulesByContainer: { app: empty } }), attempt('/bin/sh'))).toEqual(
      violation('Unlisted'),
    );
  });

  it.each(['other', 'constructor', '__proto__', ''])(
    'lets the unlisted container %j alone, or denies it',
    (container) => {
      expect(decide(policy, attempt('/bin/sh', { container }))).toEqual({ outcome: 'unrestricted' });
      const strict = policyOf({ ...rules(['/bin/sh']), unlistedContainers: 'deny' });
      expect(decide(strict, attempt('/bin/sh', { container }))).toEqual(violation('UnlistedContainer'));
      expect(decide(strict, attempt('/bin/sh'))).toEqual({ outcome: 'allowed' });
      const elsewhere = attempt('/bin/sh', { container, mountNamespace: 'other' });
      expect(decide(strict, elsewhere)).toEqual(violation('OtherMountNamespace'));
    },
  );

  it('knows the shorter limit of old kernels', () => {
    const path = `/${'a'.repeat(508)}`;
    expect(decide(policyOf(rules([path])), attempt(path))).toEqual({ outcome: 'allowed' });
    expect(decide(policyOf(rules([path])), attempt(path), 508)).toEqual(violation('TooLong'));
  });

  it('allows exactly the paths of the list', () => {
    const path = fc.stringMatching(/^\/[ab]{1,3}$/);
    fc.assert(
      fc.property(fc.uniqueArray(path, { maxLength: 5 }), path, (list, tried) => {
        const outcome = list.includes(tried) ? 'allowed' : 'violation';
        expect(decide(policyOf(rules(list)), attempt(tried)).outcome).toBe(outcome);
      }),
    );
  });
});
