import assert from 'node:assert/strict';
import { certificateStore } from '@runtime-enforcer/certs/certificate-store';
import { type AgentClient, createAgentClient } from '@runtime-enforcer/rpc/agent-client';
import type { ReportedPage, ReportedViolation } from '@runtime-enforcer/rpc/reported';
import { AGENT_NAMESPACE, AGENT_POD, CONTROLLER_CERTIFICATES } from './scene.ts';

const TOLD_BUDGET_MS = 60_000;

/** Asks an agent of this guest as a controller does. Its certificate is that of {@link AGENT_POD}, whatever its pod. */
export async function withObserver(port: number, use: (client: AgentClient) => Promise<void>): Promise<void> {
  const certificates = certificateStore({
    directory: CONTROLLER_CERTIFICATES,
    onRefused: (error) => assert.fail(String(error)),
  });
  await certificates.start();
  const client = createAgentClient({
    ...{ address: '127.0.0.1', port, podName: AGENT_POD, namespace: AGENT_NAMESPACE },
    certificates,
  });
  try {
    await use(client);
  } finally {
    client.close();
    certificates.stop();
  }
}

/** Reads violations from the beginning, until one holds all the given fields. */
export async function reportedViolation(
  port: number,
  fields: Partial<ReportedViolation>,
): Promise<ReportedViolation> {
  let found: ReportedViolation | undefined;
  await withObserver(port, async (client) => {
    for await (const page of violationPages(client)) {
      found = page.entries
        .map(({ value }) => value)
        .find((value) => Object.entries(fields).every(([name, text]) => Reflect.get(value, name) === text));
      if (found !== undefined) return;
    }
  });
  return found ?? assert.fail(`no violation with ${JSON.stringify(fields)} was reported`);
}

/** How often a path was started, over all that an agent tells from the beginning. */
export async function reportedOccurrences(port: number, executablePath: string): Promise<number> {
  let occurrences = 0;
  await withObserver(port, async (client) => {
    for await (const { entries, more } of violationPages(client)) {
      for (const { value, previousCount } of entries)
        if (value.executablePath === executablePath) occurrences += value.occurrences - previousCount;
      if (!more) return;
    }
  });
  return occurrences;
}

async function* violationPages(client: AgentClient): AsyncGenerator<ReportedPage<ReportedViolation>> {
  for await (const event of client.watch({ signal: AbortSignal.timeout(TOLD_BUDGET_MS) })) {
    if (event.kind === 'lost') throw event.error;
    if (event.report.violations !== undefined) yield event.report.violations;
  }
}
