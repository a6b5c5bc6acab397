import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { policyDigest } from './policy-digest.ts';
import { parseWorkloadPolicy } from './workload-policy.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const digest = (spec: object): string => {
  const parsed = parseWorkloadPolicy({
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { name: 'web' },
    spec: { mode: 'monitor', ...spec },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return policyDigest(parsed.value.spec);
};
const app = (...allowed: string[]) => ({ app: { executables: { allowed } } });

it('is what agents compute from what their kernel holds', () => {
  expect(digest({ rulesByContainer: { ...app('/b', '/a'), 'a-side': {} }, unlistedContainers: 'deny' })).toBe(
    sha256(
      JSON.stringify([
        ['*', 'deny', sha256('')],
        ['a-side', 'deny', sha256('')],
        ['app', 'deny', sha256('/a\0/b')],
      ]),
    ),
  );
});

it('does not depend on the order of paths, and not on the mode', () => {
  expect(digest({ rulesByContainer: app('/a', '/b') })).toBe(
    digest({ rulesByContainer: app('/b', '/a'), mode: 'protect' }),
  );
});

it.each([
  [app('/a'), 'allow'],
  [app('/a', '/b'), 'deny'],
  [{ side: { executables: { allowed: ['/a'] } } }, 'deny'],
  [{ app: { executables: { allowed: ['/a'], otherMountNamespaces: 'unchecked' } } }, 'deny'],
])('differs for %j with unlisted containers: %s', (rulesByContainer, unlistedContainers) => {
  expect(digest({ rulesByContainer, unlistedContainers })).not.toBe(
    digest({ rulesByContainer: app('/a'), unlistedContainers: 'deny' }),
  );
});
