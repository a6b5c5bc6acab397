import { join } from 'node:path';
import { AGENT_PROGRAM } from '../runtime/agent-process.ts';
import { agentPayload } from '../runtime/agent-payload.ts';
import { bundleForGuest } from '../vm/guest-bundle.ts';
import { type GuestResult, runInGuest } from '../vm/guest.ts';

/** What the demo runs on, as Debian's stable release has it. */
export const DEMO_KERNEL = '6.12';

const GUEST_BUDGET_MS = 300_000;
const DEMO_IN_GUEST = '/run/payload/demo.mjs';

export interface DemoOptions {
  /** Takes every line of the narration as it comes. */
  onLine: (line: string) => void;
  /**
   * Holds the node at mode monitor behind the demo's back, as `agent override` does: what the demo says is denied runs
   * then, so that a test sees the demo fail.
   */
  heldAtMonitor?: boolean;
}

/** Boots a guest and plays the demo in it; the exit code is 0 only if everything happened that it tells. */
export async function playDemoInGuest({ onLine, heldAtMonitor = false }: DemoOptions): Promise<GuestResult> {
  const demo = join(import.meta.dirname, 'demo.guest.ts');
  const payload = [
    ...(await agentPayload()),
    { path: DEMO_IN_GUEST, source: await bundleForGuest(`import ${JSON.stringify(demo)};`) },
  ];
  // There is nothing to hold before the demo's agent has loaded the kernel program.
  const hold = `until node ${AGENT_PROGRAM} override --mode monitor; do sleep 0.2; done >/dev/null 2>&1 &`;
  return await runInGuest({
    kernel: DEMO_KERNEL,
    containerd: true,
    payload,
    command: heldAtMonitor ? ['sh', '-c', `${hold} exec node ${DEMO_IN_GUEST}`] : ['node', DEMO_IN_GUEST],
    timeoutMs: GUEST_BUDGET_MS,
    onLine,
  });
}
