import { join } from 'node:path';
import type { RunRing } from '../rings/report.ts';
import { runGuestSuite } from '../vm/guest-suite.ts';

const HERE = import.meta.dirname;
const GUEST_BUDGET_MS = 600_000;

/** The runtime ring: real containers, started by containerd with runc and crun, in guests. */
export const run: RunRing = async (report) => {
  report.heading('containerd on Linux 6.12');
  await runGuestSuite(
    {
      kernel: '6.12',
      containerd: true,
      files: [join(HERE, 'pods.guest.test.ts')],
      timeoutMs: GUEST_BUDGET_MS,
    },
    report,
  );
  return report.result();
};
