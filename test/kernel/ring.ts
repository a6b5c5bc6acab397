import { join } from 'node:path';
import type { RunRing } from '../rings/report.ts';
import { type GuestSuiteOptions, runGuestSuite } from '../vm/guest-suite.ts';
import { programPayload } from './program-payload.ts';

const GUEST_BUDGET_MS = 900_000;
const TEST_BUDGET_MS = 420_000;
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

const BOOTS: readonly Boot[] = (['5.10', '6.1', '6.12', '7'] as const).map((kernel) => ({
  title: `Linux ${kernel}`,
  guest: { kernel },
  suites: [
    ...['decisions', 'outcomes', 'evasion', 'cgroups', 'changes', 'names', 'mounts', 'agreement'],
    ...(kernel === '6.12' ? ['life'] : []),
  ],
}));

/** The kernel ring: the program, the addon and the agent's kernel side on Debian's stock kernels. */
export const run: RunRing = async (report) => {
  const payload = await programPayload();
  const only = process.env[BOOT_VARIABLE] ?? '';
  for (const { title, guest, suites } of BOOTS) {
    const chosen = suites.filter((suite) => suite === (process.env[SUITE_VARIABLE] ?? suite));
    if (!title.includes(only) || chosen.length === 0) continue;
    report.heading(title);
    await runGuestSuite(
      {
        ...guest,
        payload,
        files: chosen.map((suite) => join(import.meta.dirname, `${suite}.guest.test.ts`)),
        timeoutMs: GUEST_BUDGET_MS,
        testTimeoutMs: TEST_BUDGET_MS,
      },
      report,
    );
  }
  return report.result();
};
