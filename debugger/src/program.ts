import { setTimeout as sleep } from 'node:timers/promises';
import { certificateStore } from '@runtime-enforcer/certs/certificate-store';
import { clusterAccess } from '@runtime-enforcer/kube/cluster-access';
import { createAgentClient } from '@runtime-enforcer/rpc/agent-client';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { compareCluster, type LookParts } from './look.ts';
import { type ClusterReport, isAligned } from './node-report.ts';
import type { DebuggerOptions } from './options.ts';
import { reportJson } from './report-json.ts';
import { reportText } from './report-text.ts';

/** Something differs; only told by a run that compares once. */
export const EXIT_DIFFERENCES = 3;

export interface DebuggerOutput {
  /** Reports. */
  readonly write: (text: string) => void;
  /** A line about what went wrong. */
  readonly complain: (line: string) => void;
}

/**
 * Compares until the signal ends, or once.
 *
 * @returns the exit code
 * @throws Error where it cannot begin, and for `once` where the cluster cannot be read
 */
export async function runDebugger(
  options: DebuggerOptions,
  { write, complain }: DebuggerOutput,
  signal: AbortSignal,
): Promise<number> {
  const { once, output, intervalMs, grpcPort, agentSelector, certificateDirectory, agentServerName } =
    options;
  const format = output === 'json' ? reportJson : reportText;
  const certificates = certificateStore({
    directory: certificateDirectory,
    onRefused: (error) =>
      complain(`the certificate cannot be used; the last one stays: ${describeError(error)}`),
  });
  await certificates.start();
  try {
    const access = await clusterAccess(options);
    try {
      const { client, namespace } = access;
      const parts: LookParts = {
        ...{ client, namespace, signal, selector: agentSelector },
        connect: ({ address, name }) =>
          createAgentClient({
            ...{ address, port: grpcPort, podName: name, namespace, certificates },
            ...(agentServerName !== undefined && { serverName: agentServerName }),
          }),
      };
      if (once) {
        const report = await compareCluster(parts);
        write(format(report));
        return isAligned(report) ? 0 : EXIT_DIFFERENCES;
      }
      await repeat(parts, intervalMs, (report) => write(format(report)), complain);
      return 0;
    } finally {
      await access.close();
    }
  } finally {
    certificates.stop();
  }
}

async function repeat(
  parts: LookParts,
  intervalMs: number,
  tell: (report: ClusterReport) => void,
  complain: (line: string) => void,
): Promise<void> {
  const { signal } = parts;
  while (!signal.aborted) {
    try {
      tell(await compareCluster(parts));
    } catch (error) {
      if (isOver(signal)) return;
      complain(`not compared: ${describeError(error)}`);
    }
    await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

function isOver(signal: AbortSignal): boolean {
  return signal.aborted;
}
