import { builtFiles } from '../built-files.ts';
import { loadNative } from '../kernel/native.ts';
import { releaseNode, setOverrideOnNode } from '../kernel/node-control.ts';
import { askStatus } from '../node/status-socket.ts';

/** Takes all enforcement off this node. Returns what to print. */
export async function release(stateDirectory: string): Promise<string> {
  const removed = await releaseNode();
  const agent = await askStatus(stateDirectory).catch(() => undefined);
  const done =
    removed.length === 0
      ? 'nothing was enforced on this node\n'
      : `enforcement is off this node (${removed.join(', ')} removed)\n`;
  return agent === undefined ? done : `${done}the agent still runs; its next start enforces again\n`;
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
