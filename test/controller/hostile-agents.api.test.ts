import { gzipSync } from 'node:zlib';
import { createAuthority } from '@runtime-enforcer/certs/authority';
import { ACKNOWLEDGE_ANNOTATION_PREFIX } from '@runtime-enforcer/api/keys';
import { MAX_VIOLATION_RECORDS } from '@runtime-enforcer/api/limits';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { objectPath } from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { encodedReport, type HostileWatch } from './hostile-agent.ts';
import {
  greeting,
  type HostileNames,
  type HostileScene,
  hostileScene,
  hostileViolation as violation,
  nodeState,
  violationPage as page,
} from './hostile-scene.ts';

const NAMESPACE = 'shop';
const HUGE = 2n ** 64n - 1n;

let scene: HostileScene;
beforeAll(async () => {
  scene = await hostileScene();
});
afterEach(async () => await scene.end());
afterAll(async () => await scene.stop());

async function endless(watch: HostileWatch, message: (count: number) => Buffer): Promise<void> {
  for (let count = 1; watch.isOpen; count++) await watch.send(message(count));
}

describe('an agent that lies', () => {
  it('about its node is missing, and speaks for nobody', async () => {
    const names = await scene.against(async (watch, { policy, honestPod }) => {
      const about = { policy, pod: honestPod, nodeName: scene.honestNode };
      const node = nodeState(scene.honestNode);
      await watch.send(encodedReport({ node, violations: page([violation(about, { occurrences: 999 })]) }));
    });
    const status = await scene.unharmed(names);
    expect(status.violationCount).toBe(1);
    expect(status.nodesWithIssues.get(names.nodeName)).toMatchObject({
      code: 'Missing',
      message: expect.stringContaining('says that it is on another node') as string,
    });
  });

  it("about other tenants' pods, and other nodes', is not believed", async () => {
    const names = await scene.against(async (watch, mine) => {
      await watch.send(greeting(mine));
      const lies = [
        violation(mine, { podName: mine.honestPod }),
        violation(mine, { nodeName: scene.honestNode }),
        violation(mine, { policyName: 'bank/vault' }),
        violation(mine, { policyName: 'no-slash' }),
        ...Array.from({ length: 500 }, (_, at) =>
          violation(mine, { policyName: `${NAMESPACE}/made-up-${at}` }),
        ),
      ];
      await watch.send(encodedReport({ violations: page(lies) }));
    });
    expect((await scene.unharmed(names)).violationCount).toBe(1);
  });

  it.each([
    ['of another authority', async () => ({ authority: await foreignAuthority() })],
    ['of another pod', () => Promise.resolve({ certifiedPod: 'agent-0' })],
  ])('with a certificate %s is not listened to', async (_, more) => {
    const names = await scene.against(
      async (watch, mine) => {
        await watch.send(greeting(mine));
        await watch.send(encodedReport({ violations: page([violation(mine)]) }));
      },
      await more(),
    );
    const status = await eventually('it is missing', async () => {
      const current = await scene.unharmed(names);
      return current.nodesWithIssues.has(names.nodeName) ? current : undefined;
    });
    expect(status.nodesWithIssues.get(names.nodeName)).toMatchObject({ code: 'Missing' });
    expect(status.violations.every(({ nodeName }) => nodeName === scene.honestNode)).toBe(true);
    expect(scene.watches()).toBe(0);
  });
});

async function foreignAuthority() {
  return await createAuthority({ commonName: 'foreign', now: new Date(), validForMs: 3_600_000 });
}

/** Bytes that are no UTF-8, in a message that is otherwise whole. */
function notUtf8(names: HostileNames): Buffer {
  const message = encodedReport({ violations: page([violation(names, { executablePath: '/bin/QQQQ' })]) });
  Buffer.from([0xff, 0xfe, 0xc0, 0x80]).copy(message, message.indexOf('QQQQ'));
  return message;
}

const EMPTY_ENTRIES = 2_000_000;
/** Field 3 of a report, a page, of which each field 3 is an empty entry. */
function emptyEntries(): Buffer {
  const entries = Buffer.alloc(2 * EMPTY_ENTRIES, Buffer.from([0x1a, 0x00]));
  const length: number[] = [];
  for (let left = entries.length; left > 0; left = Math.floor(left / 128)) {
    length.push((left % 128) + (left >= 128 ? 128 : 0));
  }
  return Buffer.concat([Buffer.from([0x1a, ...length]), entries]);
}

const NONSENSE: readonly (readonly [string, (watch: HostileWatch, names: HostileNames) => Promise<void>])[] =
  [
    ['text that is not UTF-8', async (watch, names) => await watch.send(notUtf8(names))],
    ['a message of 5 MiB', async (watch) => await watch.send(Buffer.alloc(5 * 2 ** 20))],
    [
      'a message that says to be of 4 GiB',
      async (watch) => await watch.sendRaw(Buffer.from([0, 255, 255, 255, 255, 1, 2, 3])),
    ],
    ['bytes that are no message', async (watch) => await watch.send(Buffer.from('not a report'.repeat(100)))],
    ['bytes that are no frame', async (watch) => await watch.sendRaw(Buffer.alloc(2 ** 20, 0x41))],
    [
      'two million empty entries in each message',
      async (watch) => {
        const message = emptyEntries();
        await endless(watch, () => message);
      },
    ],
    [
      'numbers that no counter reaches',
      async (watch, names) => {
        for (const sequence of [HUGE, 2n ** 63n - 1n, 2n ** 53n, 7n]) {
          for (const occurrences of [HUGE, 2n ** 53n - 1n, 0n]) {
            const entry = { sequence, violation: violation(names, { occurrences }), previousOccurrences: 0 };
            const cursor = { incarnation: `i${sequence}`, sequence };
            await watch.send(encodedReport({ violations: { cursor, entries: [entry], resync: true } }));
          }
        }
      },
    ],
    [
      'times that no clock shows',
      async (watch, names) => {
        const times = [-62_135_596_801, 253_402_300_800, 8.64e12, -(2 ** 52), 0];
        const entries = times.map((each, at) =>
          violation(names, {
            timestamp: { seconds: each, nanos: at },
            firstObserved: { seconds: -each, nanos: -1 },
          }),
        );
        await watch.send(encodedReport({ violations: page(entries) }));
      },
    ],
    [
      'policies with names of a megabyte',
      async (watch) =>
        await endless(watch, (count) => {
          const policies = { [`${count}/${'n'.repeat(2 ** 20)}`]: { state: 1, mode: 2, message: 'm' } };
          return encodedReport({
            policies: { cursor: { incarnation: 'p', sequence: 1 + count }, policies, more: true },
          });
        }),
    ],
    [
      'another state of itself a thousand times a second',
      async (watch, names) => {
        for (let count = 0; watch.isOpen; count++) {
          await watch.send(
            encodedReport({ node: { ...nodeState(names.nodeName), attached: count % 2 === 0 } }),
          );
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
      },
    ],
  ];

describe('an agent that sends', () => {
  it.each(NONSENSE)('%s keeps nobody else from being heard', { timeout: 60_000 }, async (_, nonsense) => {
    const names = await scene.against(async (watch, mine) => {
      await watch.send(greeting(mine));
      await nonsense(watch, mine);
    });
    // Its worst takes a while to show.
    for (let round = 0; round < 4; round++) await scene.unharmed(names);
  });

  it('another journal with each page keeps nobody from counting', { timeout: 60_000 }, async () => {
    const names = await scene.against(async (watch, mine) => {
      await watch.send(greeting(mine));
      await endless(watch, (count) => {
        const filled = Array.from({ length: 500 }, (_, at) =>
          violation(mine, { executablePath: `/bin/${count}/${at}`, image: 'x'.repeat(1_000) }),
        );
        return encodedReport({ violations: page(filled, 1, `journal-${count}`) });
      });
    });
    for (let round = 0; round < 4; round++) {
      const { violations } = await scene.countsOn(names);
      expect(violations.length).toBeLessThanOrEqual(MAX_VIOLATION_RECORDS);
    }
  });

  it('a gigabyte as a megabyte keeps nobody else from being heard', async () => {
    const bomb = gzipSync(Buffer.alloc(2 ** 30));
    const names = await scene.against(async (watch) => await watch.send(bomb, true), {
      headers: { 'grpc-encoding': 'gzip' },
    });
    for (let round = 0; round < 3; round++) await scene.unharmed(names);
  });

  it(
    'a million violations keeps to its place, and nobody else from being heard',
    { timeout: 240_000 },
    async () => {
      const MILLION = 1_000_000;
      const PAGE = 1_000;
      let sent = 0;
      const names = await scene.against(async (watch, mine) => {
        await watch.send(greeting(mine));
        for (sent = 0; sent < MILLION && watch.isOpen; sent += PAGE) {
          const paths = Array.from({ length: PAGE }, (_, at) =>
            violation(mine, { executablePath: `/tmp/${sent + at}` }),
          );
          await watch.send(encodedReport({ violations: page(paths, 1 + sent) }));
        }
      });
      const start = performance.now();
      let rounds = 0;
      for (; sent < MILLION && performance.now() - start < 120_000; rounds++) {
        const { violations, violationCount } = await scene.countsOn(names);
        expect(violations.length).toBeLessThanOrEqual(MAX_VIOLATION_RECORDS);
        expect(violationCount).toBeLessThanOrEqual(MILLION + 1 + rounds);
      }
      expect(rounds).toBeGreaterThan(0);
      console.log(
        `${sent} violations in ${((performance.now() - start) / 1_000).toFixed(0)} s, ${(await scene.rssMib()).toFixed(0)} MiB`,
      );
    },
  );

  it('words that act on whoever reads them has them kept as they are, and Events without them', async () => {
    const { client } = scene.plane.admin;
    const WORDS = '\u001b[2J\u202egnp.exe\u0000\n\u2028';
    const names = await scene.against(async (watch, mine) => {
      await watch.send(greeting(mine));
      const words = {
        executablePath: `/bin/${WORDS}`,
        parentName: WORDS,
        image: WORDS,
        reason: WORDS,
        origin: WORDS,
      };
      await watch.send(encodedReport({ violations: page([violation(mine, words)]) }));
    });
    await scene.unharmed(names);
    const { violations } = await scene.statusNow(names.policy);
    const record = violations.find(({ nodeName }) => nodeName === names.nodeName);
    expect(record).toMatchObject({ executablePath: `/bin/${WORDS}`, image: WORDS, parentName: WORDS });
    expect(record).not.toHaveProperty('reason');
    const events = await eventually('there are Events', async () => {
      const { items } = (await client.request({
        path: `/api/v1/namespaces/${NAMESPACE}/events`,
        query: { fieldSelector: `involvedObject.name=${names.policy}` },
      })) as { readonly items: readonly { readonly message: string }[] };
      return items.length > 0 ? items : undefined;
    });
    for (const { message } of events) expect(message).toMatch(/^[\x20-\x7e]*$/);
    // A person's words are no safer.
    await client.request({
      method: 'PATCH',
      path: objectPath({ resource: WORKLOAD_POLICIES, namespace: NAMESPACE, name: names.policy }),
      patchType: 'application/merge-patch+json',
      body: { metadata: { annotations: { [`${ACKNOWLEDGE_ANNOTATION_PREFIX}${record?.id}`]: WORDS } } },
    });
    const [acknowledged] = await eventually('it is acknowledged', async () => {
      const { acknowledgedViolations } = await scene.statusNow(names.policy);
      return acknowledgedViolations.length > 0 ? acknowledgedViolations : undefined;
    });
    expect(acknowledged?.reason).toMatch(/^[\x20-\x7e]+$/);
  });
});
