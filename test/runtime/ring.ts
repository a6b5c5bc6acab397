import { join } from 'node:path';
import { runParts } from '../rings/reports-in-turn.ts';
import type { RunRing } from '../rings/report.ts';
import { guestPlaces } from '../vm/guest-process.ts';
import { type GuestSuiteOptions, runGuestSuite } from '../vm/guest-suite.ts';
import { agentPayload } from './agent-payload.ts';

const GUEST_BUDGET_MS = 1_500_000;
/** A pod takes a second in a guest that has the machine to itself, and several beside others. */
const TEST_BUDGET_MS = 180_000;

/** The suites to run, separated by commas; all when it is not set. */
const ONLY_VARIABLE = 'RUNTIME_ENFORCER_SUITE';

interface Boot {
  readonly title: string;
  readonly guest: Pick<GuestSuiteOptions, 'kernel' | 'cgroups'>;
  /** Names of test files here, without `.guest.test.ts`. */
  readonly suites: readonly string[];
}

const BOOTS: readonly Boot[] = [
  {
    title: 'what containers may do, on Linux 6.12',
    guest: { kernel: '6.12' },
    suites: ['pods', 'binding', 'lists', 'policy-changes', 'attacks', 'learning'],
  },
  {
    title: 'the life of the agent, on Linux 6.12',
    guest: { kernel: '6.12' },
    suites: ['agent-life'],
  },
  {
    title: 'cgroups of version 1 and 2, on Linux 6.1',
    guest: { kernel: '6.1', cgroups: 'hybrid' },
    suites: ['hybrid'],
  },
];

/** The runtime ring: real containers, started by containerd with runc and crun, beside the agent as it is shipped. */
export const run: RunRing = async (report) => {
  const asked = suitesAsked(process.env[ONLY_VARIABLE]);
  const payload = await agentPayload();
  const boots = BOOTS.map((boot) => ({ ...boot, suites: boot.suites.filter((suite) => asked.has(suite)) }));
  await runParts(
    boots.filter(({ suites }) => suites.length > 0),
    guestPlaces(),
    report,
    async ({ guest, suites }, part) =>
      await runGuestSuite(
        {
          ...guest,
          containerd: true,
          payload,
          files: suites.map((suite) => join(import.meta.dirname, `${suite}.guest.test.ts`)),
          timeoutMs: GUEST_BUDGET_MS,
          testTimeoutMs: TEST_BUDGET_MS,
        },
        part,
      ),
  );
  return report.result();
};

function suitesAsked(names: string | undefined): ReadonlySet<string> {
  const known = BOOTS.flatMap(({ suites }) => suites);
  if (names === undefined) return new Set(known);
  const asked = names.split(',');
  for (const name of asked) {
    if (known.includes(name)) continue;
    throw new RangeError(
      `${ONLY_VARIABLE}: there is no suite ${JSON.stringify(name)}; there are ${known.join(', ')}`,
    );
  }
  return new Set(asked);
}
