import { describe, expect, it } from 'vitest';
import { API_VERSION } from './keys.ts';
import { parsePolicyTest, runPolicyTest } from './policy-test.ts';
import { parseWorkloadPolicy } from './workload-policy.ts';

const document = (more: object = {}) => ({
  apiVersion: API_VERSION,
  kind: 'PolicyTest',
  metadata: { name: 'web' },
  policy: 'web.yaml',
  execs: [
    { container: 'app', path: '/usr/bin/ls', expect: 'allow' },
    { container: 'app', path: '/usr/bin/ps', expect: 'deny' },
  ],
  ...more,
});

function run(more: object = {}, spec: object = {}) {
  const test = parsePolicyTest(document(more));
  const policy = parseWorkloadPolicy({
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicy',
    metadata: { name: 'web' },
    spec: {
      mode: 'monitor',
      rulesByContainer: {
        app: { executables: { allowed: ['/usr/bin/ls'], otherMountNamespaces: 'unchecked' } },
      },
      ...spec,
    },
  });
  if (!test.ok || !policy.ok) throw new Error(JSON.stringify([test, policy]));
  return runPolicyTest(test.value, policy.value.spec);
}

describe('runPolicyTest', () => {
  it('passes what the policy answers as expected', () => {
    expect(run()).toEqual([
      { title: 'app: /usr/bin/ls is allowed' },
      { title: 'app: /usr/bin/ps is denied' },
    ]);
  });

  it.each<[string, object, object, string]>([
    ['an allowed one', { container: 'app', path: '/usr/bin/ls', expect: 'deny' }, {}, 'is on the list'],
    ['a denied one', { container: 'app', path: '/x', expect: 'allow' }, {}, 'violation (Unlisted)'],
    [
      'an unlisted container',
      { container: 'x', path: '/x', expect: 'deny' },
      {},
      'does not name container x',
    ],
    [
      'an unlisted container that may start nothing',
      { container: 'x', path: '/x', expect: 'allow' },
      { unlistedContainers: 'deny' },
      'UnlistedContainer',
    ],
    [
      'another mount namespace',
      { container: 'app', path: '/x', expect: 'deny', mountNamespace: 'other' },
      {},
      'unchecked',
    ],
  ])('says why %s was expected wrongly', (_, exec, spec, failure) => {
    expect(run({ execs: [exec] }, spec)[0]?.failure).toContain(failure);
  });

  it('checks the mode where that is asked', () => {
    expect(run({ expectMode: 'monitor', execs: [] })).toEqual([{ title: 'the mode is monitor' }]);
    expect(run({ expectMode: 'protect', execs: [] })[0]?.failure).toBe('the mode is monitor');
  });
});

describe('parsePolicyTest', () => {
  it.each<[string, object, string]>([
    ['an unknown answer', { execs: [{ container: 'a', path: '/x', expect: 'maybe' }] }, 'execs[0].expect'],
    ['a relative path', { execs: [{ container: 'a', path: 'x', expect: 'deny' }] }, 'execs[0].path'],
    ['a missing policy', { policy: undefined }, 'policy'],
    ['a misspelt field', { exec: [] }, 'exec'],
  ])('refuses %s by its field', (_, more, field) => {
    const parsed = parsePolicyTest(document(more));
    expect(!parsed.ok && parsed.errors.map(({ path }) => path)).toEqual([field]);
  });
});
