import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EXEC_ORIGINS } from '@runtime-enforcer/api/exec-origin';
import { executablePathFromBytes } from '@runtime-enforcer/api/executable-path';
import { VIOLATION_REASONS } from '@runtime-enforcer/api/violation';
import { messageCodec } from './message-codec.ts';
import { encodedBytesAtMost } from './page-size.ts';
import { policyEntryPool } from './policy-entry-pool.ts';
import { readReport, reportCodec } from './report-codec.ts';
import type { NodeReport, ReportedPolicies, ReportedPolicy, ReportedViolation } from './reported.ts';

const time = fc
  .date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString());
const name = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 63 })
  .map((text) => text.replaceAll('/', '-'));
const path = fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => {
  const parsed = executablePathFromBytes(Uint8Array.from([0x2f, ...bytes.map((byte) => byte || 0x61)]));
  return parsed.ok ? parsed.value : '/bin/sh';
});
const violation: fc.Arbitrary<ReportedViolation> = fc.record(
  {
    namespace: name,
    policyName: name,
    podName: name,
    containerName: name,
    executablePath: path,
    nodeName: name,
    action: fc.constantFrom('monitor', 'protect'),
    occurrences: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    firstObservedTimestamp: time,
    lastObservedTimestamp: time,
    reason: fc.constantFrom(...VIOLATION_REASONS),
    origin: fc.constantFrom(...EXEC_ORIGINS),
    pid: fc.integer({ min: 1, max: 4_194_304 }),
    uid: fc.nat({ max: 4_294_967_295 }),
    parentName: name,
    image: fc.string({ unit: 'binary', minLength: 1, maxLength: 200 }),
    overflow: fc.constant(true),
  },
  {
    requiredKeys: [
      'namespace',
      'policyName',
      'podName',
      'containerName',
      'executablePath',
      'nodeName',
      'action',
      'occurrences',
      'firstObservedTimestamp',
      'lastObservedTimestamp',
    ],
  },
);
const cursor = { incarnation: 'one', sequence: 7 };
const page = (entries: readonly { sequence: number; value: ReportedViolation; previousCount: number }[]) => ({
  violations: { cursor, resync: true, entries, more: false, refused: 0, refusals: [] },
});
const example: ReportedViolation = {
  namespace: 'shop',
  policyName: 'web',
  podName: 'web-1',
  containerName: 'app',
  executablePath: '/bin/sh',
  nodeName: 'node-1',
  action: 'protect',
  occurrences: 3,
  firstObservedTimestamp: '2026-01-31T12:00:00.000Z',
  lastObservedTimestamp: '2026-01-31T12:00:00.001Z',
};

const state = (mode: ReportedPolicy['mode']): ReportedPolicy => ({
  ...{ state: 'ready', message: '', digest: 'd'.repeat(64), paths: 3 },
  mode,
});
const policyPage: fc.Arbitrary<ReportedPolicies> = fc.record({
  cursor: fc.constant(cursor),
  resync: fc.boolean(),
  policies: fc
    .array(
      fc.tuple(
        fc.oneof(fc.constantFrom('shop/web', 'shop/api'), name),
        fc.record({
          state: fc.constantFrom('ready', 'error', 'retained', 'unknown'),
          mode: fc.constantFrom('monitor', 'protect', 'unknown'),
          message: fc.oneof(fc.constant(''), fc.string({ unit: 'binary', maxLength: 700 })),
          digest: fc.constantFrom('', 'd'.repeat(64)),
          paths: fc.nat({ max: 3 }),
        }),
      ),
      { maxLength: 20 },
    )
    .map((entries) => new Map(entries)),
  removed: fc.array(name, { maxLength: 3 }),
  more: fc.boolean(),
});

const seconds = { seconds: 1_700_000_000, nanos: 0 };
const entryAt = (sequence: number | bigint) => ({
  sequence,
  violation: { ...example, policyName: 'shop/web', timestamp: seconds, firstObserved: seconds },
});

describe('reportCodec', () => {
  it('gives back every violation that it was given', () => {
    fc.assert(
      fc.property(violation, fc.nat({ max: Number.MAX_SAFE_INTEGER }), (value, sequence) => {
        const report: NodeReport = page([{ sequence, value, previousCount: 0 }]);
        expect(reportCodec.decode(reportCodec.encode(report))).toEqual(report);
      }),
    );
  });

  it('takes no more bytes than a page reckons with', () => {
    fc.assert(
      fc.property(violation, (value) => {
        const entry = { sequence: Number.MAX_SAFE_INTEGER, value, previousCount: 0 };
        const empty = reportCodec.encode(page([])).length;
        // The lengths of page and report grow with their content.
        expect(reportCodec.encode(page([entry])).length - empty - 8).toBeLessThanOrEqual(
          encodedBytesAtMost(entry),
        );
      }),
    );
  });

  it('makes text of half a surrogate pair that any reader of UTF-8 accepts', () => {
    const value = { ...example, podName: 'web-\ud800' };
    const bytes = reportCodec.encode(page([{ sequence: 1, value, previousCount: 0 }]));
    expect(reportCodec.decode(bytes).violations?.entries[0]?.value.podName).toBe('web-\ufffd');
    // As the reader of another program does, which takes no text that is not UTF-8.
    expect(bytes.includes(Buffer.from('web-\ufffd'))).toBe(true);
  });

  it('keeps a violation whose reason and origin a later version made up', () => {
    const value = { ...example, reason: 'Later', origin: 'later' } as unknown as ReportedViolation;
    const decoded = reportCodec.decode(reportCodec.encode(page([{ sequence: 1, value, previousCount: 0 }])));
    expect(decoded.violations?.entries[0]?.value).toEqual(example);
  });

  it.each<[string, Partial<ReportedViolation>, number, RegExp]>([
    ['an action that there is not', { action: 'allow' as 'monitor' }, 0, /action: "allow" is not known/],
    ['a name that is too long', { podName: 'x'.repeat(300) }, 0, /podName: the text is longer/],
    ['no time', { lastObservedTimestamp: '' }, 0, /lastObservedTimestamp: "" is not a time/],
    ['a count that fell', {}, 4, /previous: the entry before counted 4, and this one 3/],
  ])('leaves out an entry with %s, says why, and keeps the others', (_, change, previousCount, reason) => {
    const entries = [
      { sequence: 1, value: { ...example, ...change }, previousCount },
      { sequence: 2, value: example, previousCount: 0 },
    ];
    const { violations } = reportCodec.decode(reportCodec.encode(page(entries)));
    expect(violations).toMatchObject({ refused: 1, refusals: [expect.stringMatching(reason)] });
    expect(violations?.entries.map(({ sequence }) => sequence)).toEqual([2]);
    expect(violations?.cursor).toEqual(cursor);
  });

  it('leaves out an entry whose place no counter reaches', () => {
    const plain = messageCodec<object>('runtimeenforcer.agent.v1.Report');
    const good = plain.encode({ violations: { cursor, entries: [entryAt(7)] } });
    expect(reportCodec.decode(good).violations?.entries).toHaveLength(1);
    for (const sequence of [2n ** 53n, 2n ** 63n, 2n ** 64n - 1n]) {
      const bytes = plain.encode({ violations: { cursor, entries: [entryAt(sequence)] } });
      expect(reportCodec.decode(bytes).violations).toMatchObject({
        refused: 1,
        refusals: [expect.stringContaining(`sequence: ${sequence} is out of range`)],
      });
    }
  });

  it('refuses more entries than an agent sends before it has made anything of them', () => {
    const plain = messageCodec<object>('runtimeenforcer.agent.v1.Report');
    const many = Array.from({ length: 500_000 }, () => ({}));
    for (const report of [{ violations: { entries: many } }, { observations: { entries: many } }]) {
      const bytes = plain.encode(report);
      const start = performance.now();
      expect(() => reportCodec.decode(bytes)).toThrow(/are not a valid/);
      expect(performance.now() - start).toBeLessThan(100);
    }
  });

  it('reads the same of policies, whatever else was read before', () => {
    const pool = policyEntryPool();
    fc.assert(
      fc.property(policyPage, (policies) => {
        const report: NodeReport = { policies };
        expect(readReport(reportCodec.encode(report), pool)).toEqual(report);
      }),
    );
  });

  it('reads what many nodes say alike of a policy into one object', () => {
    const pool = policyEntryPool();
    const [first, second, changed] = [state('protect'), state('protect'), state('monitor')].map((policy) => {
      const policies = {
        cursor,
        resync: true,
        policies: new Map([['shop/web', policy]]),
        removed: [],
        more: false,
      };
      return readReport(reportCodec.encode({ policies }), pool).policies?.policies.get('shop/web');
    });
    expect(first).toEqual(state('protect'));
    expect(second).toBe(first);
    expect(changed).toEqual(state('monitor'));
  });

  it('takes a page that comes in two parts for one', () => {
    const pages = ['shop/web', 'shop/api'].map((key) =>
      reportCodec.encode({
        policies: {
          cursor,
          resync: true,
          policies: new Map([[key, state('protect')]]),
          removed: [key],
          more: true,
        },
      }),
    );
    expect(reportCodec.decode(Buffer.concat(pages)).policies).toMatchObject({
      ...{ cursor, resync: true, removed: ['shop/web', 'shop/api'], more: true },
      policies: new Map([
        ['shop/web', state('protect')],
        ['shop/api', state('protect')],
      ]),
    });
  });

  it('leaves out a policy whose name no policy can have', () => {
    const plain = messageCodec<object>('runtimeenforcer.agent.v1.Report');
    const policies = { 'shop/web': { state: 1 }, ['x'.repeat(2 ** 20)]: { state: 1 } };
    const decoded = reportCodec.decode(plain.encode({ policies: { policies } }));
    expect([...(decoded.policies?.policies.keys() ?? [])]).toEqual(['shop/web']);
  });

  it('keeps a policy whose state a later version made up, as unknown', () => {
    const plain = messageCodec('runtimeenforcer.agent.v1.Report');
    const bytes = plain.encode({ policies: { policies: { 'shop/web': { state: 99, mode: 99 } } } });
    expect(reportCodec.decode(bytes).policies?.policies.get('shop/web')).toMatchObject({
      state: 'unknown',
      mode: 'unknown',
    });
  });

  it('never fails but with an error that names the message, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        try {
          reportCodec.decode(bytes);
        } catch (error) {
          expect((error as Error).message).toContain('are not a valid runtimeenforcer.agent.v1.Report');
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
