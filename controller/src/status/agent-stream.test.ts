import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentClient } from '@runtime-enforcer/rpc/agent-client';
import type { ReportedEntry, ReportedViolation } from '@runtime-enforcer/rpc/reported';
import { expect, it } from 'vitest';
import { SILENT_LOG } from '../testing/silent.ts';
import { agentStream } from './agent-stream.ts';
import { fakeAgent } from './fake-agent.ts';
import { policyReports } from './policy-reports.ts';

const ENTRIES_PER_PAGE = 1_000;
/** Far more than may wait. */
const PAGES = 100;

it('reads no further while too much waits to be stored, whatever incarnations the agent names', async () => {
  let pages = 0;
  const entries = Array.from({ length: ENTRIES_PER_PAGE }, (_, index) => ({
    ...{ sequence: index + 1, previousCount: 0 },
    value: { executablePath: `/bin/${index}` },
  })) as unknown as readonly ReportedEntry<ReportedViolation>[];
  async function* watch(): ReturnType<AgentClient['watch']> {
    for (; pages < PAGES; pages++) {
      const cursor = { incarnation: `i-${pages}`, sequence: ENTRIES_PER_PAGE };
      const page = { cursor, resync: true, entries, more: true, refused: 0, refusals: [] };
      yield { kind: 'report', report: { violations: page } };
      await sleep(0);
    }
  }
  const settle: (() => void)[] = [];
  const stream = agentStream({
    pod: {
      ...{ uid: 'u', name: 'agent', nodeName: 'node', address: '192.0.2.1' },
      ...{ isDeleting: false, createdAt: 0 },
    },
    client: { ...fakeAgent('node').connect(), watch },
    intake: {
      violation: (_, settled) => void settle.push(settled),
      observation: (_, settled) => void settle.push(settled),
      refused: () => undefined,
    },
    onChange: () => undefined,
    reports: policyReports(),
    log: SILENT_LOG,
  });
  stream.start();
  await sleep(500);
  expect(pages).toBeGreaterThanOrEqual(5);
  expect(pages).toBeLessThan(10);
  const before = pages;
  for (const settled of settle.splice(0)) {
    settled();
    settled();
  }
  await sleep(500);
  expect(pages).toBeGreaterThan(before);
  expect(pages).toBeLessThanOrEqual(2 * before + 1);
  await stream.stop();
});
