import { join } from 'node:path';
import { agentPayload } from '../runtime/agent-payload.ts';
import { bundleForGuest } from '../vm/guest-bundle.ts';
import { runInGuest } from '../vm/guest.ts';

const KERNEL = '6.12';
const GUEST_BUDGET_MS = 300_000;
const DEMO_IN_GUEST = '/run/payload/demo.mjs';

/** Boots a guest and plays the demo in it. Returns the exit code: 0 only if everything happened that it tells. */
async function main(): Promise<number> {
  const demo = join(import.meta.dirname, 'demo.guest.ts');
  const payload = [
    ...(await agentPayload()),
    { path: DEMO_IN_GUEST, source: await bundleForGuest(`import ${JSON.stringify(demo)};`) },
  ];
  const start = performance.now();
  process.stdout.write(
    `Booting Debian's kernel ${KERNEL} with containerd and our agent in a virtual machine ...\n`,
  );
  const result = await runInGuest({
    kernel: KERNEL,
    containerd: true,
    payload,
    command: ['node', DEMO_IN_GUEST],
    timeoutMs: GUEST_BUDGET_MS,
    onLine: (line) => process.stdout.write(`${line}\n`),
  });
  const seconds = ((performance.now() - start) / 1_000).toFixed(1);
  if (result.exitCode === 0) {
    process.stdout.write(`\nDone in ${seconds} s, with the time that the machine took to boot.\n`);
    return 0;
  }
  process.stderr.write(
    `\nThe demo failed after ${seconds} s. The machine's console:\n${result.consoleLog}\n`,
  );
  return 1;
}

process.exitCode = await main();
