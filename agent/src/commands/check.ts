import { builtFiles } from '../built-files.ts';
import { loadNative } from '../kernel/native.ts';
import { probeNode, type Finding } from '../kernel/probe.ts';
import { connectNriSocket } from '../nri/socket.ts';

/** One line of the answer. */
type Line = Pick<Finding, 'state' | 'sentence'> & { readonly name: string };

const MARKS = { ok: 'ok     ', limited: 'limited', missing: 'MISSING' } as const satisfies Record<
  Finding['state'],
  string
>;

/** Tells whether this node can run the agent: one line for each thing that was looked at. Changes nothing. */
export async function checkNode(nriSocketPath: string): Promise<{ text: string; usable: boolean }> {
  const lines = [...kernelLines(), await runtimeLine(nriSocketPath)];
  const width = Math.max(...lines.map(({ name }) => name.length));
  const usable = lines.every(({ state }) => state !== 'missing');
  const text = lines
    .map(({ state, name, sentence }) => `${MARKS[state]}  ${name.padEnd(width)}  ${sentence}\n`)
    .join('');
  const verdict = usable ? 'This node can run the agent.\n' : 'This node cannot run the agent as it is.\n';
  return { text: text + verdict, usable };
}

function kernelLines(): readonly Line[] {
  const { addon, probeObject } = builtFiles();
  try {
    return probeNode(loadNative(addon), { objectPath: probeObject }).findings;
  } catch (error) {
    const sentence = error instanceof Error ? error.message : String(error);
    return [{ name: 'addon', state: 'missing', sentence: `The kernel cannot be looked at: ${sentence}.` }];
  }
}

/** Connects and hangs up before registering: the runtime forgets such a plugin. */
async function runtimeLine(path: string): Promise<Line> {
  try {
    const socket = await connectNriSocket(path);
    socket.destroy();
    return { name: 'nri', state: 'ok', sentence: `A container runtime listens on ${path}.` };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const sentence = `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
    return { name: 'nri', state: 'missing', sentence };
  }
}
