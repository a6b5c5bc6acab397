import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { builtFiles } from '../built-files.ts';
import { loadNative } from '../kernel/native.ts';
import { releaseNode, setOverrideOnNode } from '../kernel/node-control.ts';
import { removeReleaseMark, writeReleaseMark } from '../node/release-mark.ts';
import { askStatus } from '../node/status-socket.ts';

/**
 * Takes all enforcement off this node, and marks it so that an agent leaves it alone until {@link resume}. Returns what
 * to print.
 */
export async function release(stateDirectory: string): Promise<string> {
  // First, so that an agent which starts meanwhile finds it. Without it the node is released nevertheless.
  const problem = await writeReleaseMark(stateDirectory).then(() => undefined, describeError);
  const removed = await releaseNode();
  const done =
    removed.length === 0
      ? 'nothing was enforced on this node'
      : `enforcement is off this node (${removed.join(', ')} removed)`;
  return problem === undefined
    ? `${done}, and stays off until: agent resume\n`
    : `${done}, but the next start of an agent enforces again, because that could not be written down: ${problem}\n`;
}

/** Lets agents enforce on this node again. Returns what to print. */
export async function resume(stateDirectory: string): Promise<string> {
  const wasReleased = await removeReleaseMark(stateDirectory);
  if (!wasReleased) return 'this node was not released\n';
  const agent = await askStatus(stateDirectory).catch(() => undefined);
  return agent === undefined
    ? 'an agent that runs or starts on this node enforces again\n'
    : 'the agent that runs on this node enforces again once it is restarted\n';
}

/** Puts an override above all policies of this node, or takes it away. Returns what to print. */
export async function override(mode: 'monitor' | 'off' | 'clear'): Promise<string> {
  await setOverrideOnNode(loadNative(builtFiles().addon), mode === 'clear' ? 'none' : mode);
  switch (mode) {
    case 'monitor':
      return 'nothing is denied on this node until: agent override --mode clear\n';
    case 'off':
      return 'nothing is checked on this node until: agent override --mode clear\n';
    case 'clear':
      return 'the policies of this node apply again\n';
  }
}
