import { join } from 'node:path';
import { runParts } from '../rings/reports-in-turn.ts';
import type { RingReport, RunRing } from '../rings/report.ts';
import type { PayloadItem } from '../vm/guest-initramfs.ts';
import { guestPlaces } from '../vm/guest-process.ts';
import { type GuestSuiteOptions, runGuestSuite } from '../vm/guest-suite.ts';
import { programPayload } from './program-payload.ts';

const GUEST_BUDGET_MS = 1_500_000;
const TEST_BUDGET_MS = 600_000;
/** Only the boots whose title holds this text run. */
const BOOT_VARIABLE = 'RUNTIME_ENFORCER_BOOT';
/** Only the suites of this name run. */
const SUITE_VARIABLE = 'RUNTIME_ENFORCER_SUITE';

interface Boot {
  readonly title: string;
  readonly guest: Pick<GuestSuiteOptions, 'kernel' | 'cgroups' | 'cpus' | 'append'>;
  /** Names of test files here, without `.guest.test.ts`. */
  readonly suites: readonly string[];
}

const DECISIONS = ['decisions', 'outcomes', 'evasion', 'cgroups', 'changes', 'names', 'mounts', 'agreement'];

const BOOTS: readonly Boot[] = [
  ...(['5.10', '6.1', '6.12', '7'] as const).map((kernel) => ({
    title: `Linux ${kernel}`,
    guest: { kernel },
    suites: [...DECISIONS, 'life', ...(kernel === '7' ? [] : ['preemption'])],
  })),
  {
    title: 'cgroups of version 1 and 2, on Linux 6.1',
    guest: { kernel: '6.1', cgroups: 'hybrid' },
    suites: ['cgroups', 'outcomes'],
  },
  ...(['6.1', '6.12'] as const).map((kernel) => ({
    title: `full preemption, on Linux ${kernel}`,
    guest: { kernel, cpus: 1, append: 'preempt=full' },
    suites: ['preemption'],
  })),
  {
    title: 'preemption as it is, on Linux 7',
    guest: { kernel: '7', cpus: 1 },
    suites: ['preemption'],
  },
];

/**
 * The kernel ring: the program, the addon and the agent's kernel side on Debian's stock kernels. Several guests run at
 * a time; what they tell comes in the order of BOOTS.
 */
export const run: RunRing = async (report) => {
  const payload = await programPayload();
  const title = process.env[BOOT_VARIABLE] ?? '';
  const suite = process.env[SUITE_VARIABLE];
  const boots = BOOTS.filter((boot) => boot.title.includes(title))
    .map((boot) => ({ ...boot, suites: boot.suites.filter((name) => name === (suite ?? name)) }))
    .filter(({ suites }) => suites.length > 0);
  await runParts(boots, guestPlaces(), report, async (boot, part) => await runBoot(boot, payload, part));
  return report.result();
};

async function runBoot(boot: Boot, payload: readonly PayloadItem[], report: RingReport): Promise<void> {
  await runGuestSuite(
    {
      ...boot.guest,
      payload,
      files: boot.suites.map((suite) => join(import.meta.dirname, `${suite}.guest.test.ts`)),
      timeoutMs: GUEST_BUDGET_MS,
      testTimeoutMs: TEST_BUDGET_MS,
    },
    report,
  );
}
