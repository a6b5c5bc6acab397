import fc from 'fast-check';
import { EXEC_ORIGINS } from '../exec-origin.ts';
import { API_VERSION, WORKLOAD_POLICY_KIND, WORKLOAD_POLICY_PROPOSAL_KIND } from '../keys.ts';
import { isObject } from '../schema.ts';
import { VIOLATION_REASONS } from '../violation.ts';
import { NODE_CODES } from '../workload-policy-status.ts';

/** Texts as they stand in a list of paths: most of them right, each kind of wrong among them. */
export const pathText: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .array(
        fc.oneof(
          fc.constantFrom(
            'usr',
            'bin',
            'ls',
            '...',
            '..a',
            '.b',
            'a b',
            'é日😀',
            String.raw`\\`,
            String.raw`\xff\x07`,
          ),
          fc.stringMatching(/^[a-z0-9 ._-]{1,8}[a-z]$/),
        ),
        { minLength: 1, maxLength: 6 },
      )
      .map((components) => `/${components.join('/')}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...[
        '',
        '/',
        '//',
        'usr/bin/ls',
        '/usr/',
        '/usr//ls',
        '/./ls',
        '/a/..',
        '/..',
        '/memfd:x',
        '/a (deleted)',
      ],
      ...['/a\\', '/a\\n', String.raw`/\x2e`, String.raw`/\x00`, String.raw`/\xFF`, String.raw`/\xc3\xa9`],
      ...['/a\nb', '/a\u200bb', '/a\u00a0b', '/a\u2028b', '/a\ue000', '/\u0001', '/\ufffd', '/\u0301'],
      ...[`/${'a'.repeat(4094)}`, `/${'a'.repeat(4095)}`, `/${String.raw`\xff`.repeat(4094)}`],
      ...[String.raw`/memfd\x3ax`, '/a (deleted)/b', '/a/memfd:x', ' /a', '/a '],
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 10 }).map((tail) => `/${tail}`) },
);

const containerName = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('app', 'a', 'side-car', 'constructor', '0', 'a'.repeat(63)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', 'App', 'a_b', '-a', 'a-', 'a.b', 'a'.repeat(64), 'ä', '__proto__'),
  },
);

const time = fc.constantFrom('2026-01-31T12:00:00Z', '2026-01-31T12:00:00.123456789+01:00');
const name = fc.constantFrom('web', 'node-1', '...', 'x'.repeat(253));
const count = fc.nat();

const rulesByContainer = fc.dictionary(
  containerName,
  record({
    executables: record({
      allowed: fc.uniqueArray(pathText, { maxLength: 6 }),
      otherMountNamespaces: fc.constantFrom('deny', 'unchecked'),
    }),
  }),
  { maxKeys: 4 },
);

const conditions = fc.uniqueArray(
  record(
    {
      type: fc.constantFrom('Ready', 'Full', 'Bound'),
      status: fc.constantFrom('True', 'False', 'Unknown'),
      reason: fc.constantFrom('AllNodesReady', 'X'),
      message: fc.constantFrom('', 'm'.repeat(1024)),
      lastTransitionTime: time,
      observedGeneration: count,
    },
    ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
  ),
  { maxLength: 3, selector: (condition) => condition['type'] },
);

const violation = record(
  {
    id: count,
    lastObservedTimestamp: time,
    firstObservedTimestamp: time,
    occurrences: count,
    podName: name,
    containerName: name,
    executablePath: pathText,
    nodeName: name,
    action: fc.constantFrom('monitor', 'protect'),
    reason: fc.constantFrom(...VIOLATION_REASONS),
    origin: fc.constantFrom(...EXEC_ORIGINS),
    workloadName: name,
    workloadKind: fc.constantFrom('Deployment'),
    pid: fc.nat(4_194_304),
    uid: fc.nat(4_294_967_295),
    parentName: fc.constantFrom('sh'),
    containerId: fc.constantFrom('abc'),
    image: fc.constantFrom('registry.example/app:1'),
  },
  ['id', 'lastObservedTimestamp', 'podName', 'containerName', 'executablePath', 'nodeName', 'action'],
);

const issue = { code: fc.constantFrom(...NODE_CODES), message: fc.constantFrom('', 'broken'), since: time };

const mergedFrom = fc.array(
  fc.record({
    nodeName: name,
    incarnation: fc.constantFrom('', 'one', 'i'.repeat(128)),
    sequence: count,
  }),
  { maxLength: 3 },
);

const policyStatus = record({
  observedGeneration: count,
  phase: fc.constantFrom('Ready', 'Failed', 'Transitioning'),
  totalNodes: count,
  successfulNodes: count,
  failedNodes: count,
  transitioningNodes: count,
  nodesWithIssues: fc.dictionary(name, record(issue, ['code']), { maxKeys: 3 }),
  nodesTransitioning: fc.uniqueArray(record({ nodeName: name, ...issue }, ['nodeName', 'code']), {
    maxLength: 3,
    selector: (node) => node['nodeName'],
  }),
  violationCount: count,
  activeViolationCount: count,
  violations: fc.uniqueArray(violation, { maxLength: 2, selector: ({ id }) => id }),
  acknowledgedViolations: fc.array(
    record({ violation, reason: fc.constantFrom('known'), acknowledgedAt: time }, [
      'violation',
      'reason',
      'acknowledgedAt',
    ]),
    { maxLength: 2 },
  ),
  conditions,
  mergedFrom,
});

/** WorkloadPolicies as plain objects, nearly all valid. */
export const policyObject = record(
  {
    apiVersion: fc.constant(API_VERSION),
    kind: fc.constant(WORKLOAD_POLICY_KIND),
    metadata: record(
      { name: fc.constantFrom('web', 'x'.repeat(63), 'x'.repeat(64)), namespace: fc.constant('shop') },
      ['name'],
    ),
    spec: record(
      {
        mode: fc.constantFrom('monitor', 'protect'),
        unlistedContainers: fc.constantFrom('allow', 'deny'),
        binding: record({ autoBind: fc.boolean() }),
        rulesByContainer,
      },
      ['mode'],
    ),
    status: policyStatus,
  },
  ['apiVersion', 'kind', 'metadata', 'spec'],
);

const names = fc.uniqueArray(name, { maxLength: 3 });

/** WorkloadPolicyProposals as plain objects, nearly all valid. */
export const proposalObject = record(
  {
    apiVersion: fc.constant(API_VERSION),
    kind: fc.constant(WORKLOAD_POLICY_PROPOSAL_KIND),
    metadata: fc.constant({ name: 'deploy-web' }),
    spec: record({ rulesByContainer }),
    status: record({
      observations: fc.uniqueArray(
        record(
          {
            containerName,
            executablePath: pathText,
            count: fc.integer({ min: 1 }),
            firstSeen: time,
            lastSeen: time,
            origins: fc.uniqueArray(fc.constantFrom(...EXEC_ORIGINS)),
            pods: names,
            nodes: names,
          },
          ['containerName', 'executablePath', 'count', 'firstSeen', 'lastSeen'],
        ),
        { maxLength: 3, selector: (each) => JSON.stringify([each['containerName'], each['executablePath']]) },
      ),
      conditions,
      mergedFrom,
    }),
  },
  ['apiVersion', 'kind', 'metadata', 'spec'],
);

const junk: fc.Arbitrary<unknown> = fc.constantFrom(
  ...[
    true,
    0,
    -1,
    1.5,
    '',
    'yesterday',
    'Ready',
    'monitor',
    [],
    [null],
    [[]],
    {},
    { x: 1 },
    'x'.repeat(2000),
  ],
);

/** The same objects with one value below `spec` or `status` replaced, removed, added or repeated. */
export function damaged(
  objects: fc.Arbitrary<Record<string, unknown>>,
): fc.Arbitrary<Record<string, unknown>> {
  return fc.tuple(objects, fc.nat(), fc.nat(3), junk).map(([object, where, how, value]) => {
    const copy = structuredClone(object);
    const holders = [...holdersOf(copy['spec']), ...holdersOf(copy['status'])];
    const holder = holders[where % Math.max(holders.length, 1)];
    if (Array.isArray(holder)) damageList(holder, where, how, value);
    else if (holder !== undefined) damageObject(holder, where, how, value);
    return copy;
  });
}

function* holdersOf(value: unknown): Generator<unknown[] | Record<string, unknown>> {
  if (!Array.isArray(value) && !isObject(value)) return;
  yield value;
  for (const each of Object.values(value)) yield* holdersOf(each);
}

function damageList(list: unknown[], where: number, how: number, value: unknown): void {
  const index = where % Math.max(list.length, 1);
  if (how === 0) list[index] = value;
  else if (how === 1) list.splice(index, 1);
  else if (how === 2) list.push(value);
  else if (list.length > 0) list.push(list[index]);
}

function damageObject(object: Record<string, unknown>, where: number, how: number, value: unknown): void {
  const keys = Object.keys(object);
  const key = keys[where % Math.max(keys.length, 1)];
  if (how === 0 && key !== undefined) object[key] = value;
  else if (how === 1 && key !== undefined) Reflect.deleteProperty(object, key);
  else object['extra'] = value;
}

/** fast-check's record with the required fields named, and the rest optional. */
function record(
  fields: Record<string, fc.Arbitrary<unknown>>,
  required: readonly string[] = [],
): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(fields, { requiredKeys: [...required] });
}
