import { formatStatus, type AgentStatus } from '../node/agent-status.ts';
import { readReleaseMark, releasedSentence } from '../node/release-mark.ts';
import { askStatus } from '../node/status-socket.ts';
import { builtFiles } from '../built-files.ts';
import { loadNative } from '../kernel/native.ts';
import { inspectNode } from '../kernel/node-control.ts';
import { CommandError } from './command-error.ts';

/**
 * What the agent of this node tells. Rejects with a {@link CommandError} if none runs, telling what nevertheless
 * decides in the kernel.
 */
export async function agentStatus(stateDirectory: string, format: 'text' | 'json'): Promise<string> {
  const status = await askStatus(stateDirectory);
  if (status === undefined) {
    throw new CommandError(
      `no agent enforces with --state-dir ${stateDirectory}; ${await whatIsPinned()}${await whetherReleased(stateDirectory)}`,
    );
  }
  // The agent is ours, and of whatever version: what this one does not know must not fail it.
  return format === 'json'
    ? `${JSON.stringify(status, undefined, 2)}\n`
    : formatStatus(status as AgentStatus);
}

async function whetherReleased(stateDirectory: string): Promise<string> {
  const mark = await readReleaseMark(stateDirectory).catch(() => undefined);
  return mark === undefined ? '' : `; ${releasedSentence(mark)}`;
}

async function whatIsPinned(): Promise<string> {
  try {
    const nodes = await inspectNode(loadNative(builtFiles().addon));
    if (nodes.length === 0) return 'nothing is enforced on this node';
    const each = nodes.map(
      ({ abi, programs, override }) =>
        `${programs.join(', ')} (ABI ${abi}${override === undefined ? '' : `, override ${override}`})`,
    );
    return `what an earlier agent put into the kernel still decides: ${each.join('; ')}`;
  } catch (error) {
    return `what is enforced could not be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}
