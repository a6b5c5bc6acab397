import { join } from 'node:path';
import { buildGuestPrograms } from '../guest-programs/build.ts';
import type { RingReport, RunRing } from '../rings/report.ts';
import type { KernelSeries } from '../vm/guest.ts';
import { runGuestSuite } from '../vm/guest-suite.ts';
import { REPOSITORY } from '../vm/repository.ts';

const HERE = import.meta.dirname;
const GUEST_BUDGET_MS = 300_000;

/** One guest: a kernel, how it is booted, and the tests that run there. */
interface Boot {
  readonly title: string;
  readonly kernel: KernelSeries;
  /** Which attachments must work on it. */
  readonly attachments: 'lsm,fmod_ret' | 'fmod_ret';
  readonly files: readonly string[];
  readonly append?: string;
  readonly cpus?: number;
  readonly cgroups?: 'hybrid';
}

const BOOTS: readonly Boot[] = [
  { title: 'Linux 5.10', kernel: '5.10', attachments: 'fmod_ret', files: ['checks'] },
  { title: 'Linux 6.1', kernel: '6.1', attachments: 'lsm,fmod_ret', files: ['checks'] },
  { title: 'Linux 6.12', kernel: '6.12', attachments: 'lsm,fmod_ret', files: ['checks'] },
  { title: 'newest Linux 7', kernel: '7', attachments: 'lsm,fmod_ret', files: ['checks'] },
];

/** Only the boots whose title holds this text run. */
const BOOT_VARIABLE = 'RUNTIME_ENFORCER_BOOT';

/** The kernel ring: the program on Debian's stock kernels, in guests. */
export const run: RunRing = async (report) => {
  const programs = await buildGuestPrograms();
  const payload = [
    ...Object.entries(programs).map(([name, source]) => ({ path: `/run/payload/${name}`, source })),
    ...['enforcer', 'enforcer-other-abi', 'probe'].map((name) => ({
      path: `/run/payload/${name}.bpf.o`,
      source: join(REPOSITORY, `bpf/build/${name}.bpf.o`),
    })),
    {
      path: '/run/payload/enforcer_native.node',
      source: join(REPOSITORY, 'agent/native/build/enforcer_native.node'),
    },
  ];
  const wanted = process.env[BOOT_VARIABLE] ?? '';
  for (const boot of BOOTS.filter(({ title }) => title.includes(wanted)))
    await runBoot(boot, payload, report);
  return report.result();
};

async function runBoot(
  boot: Boot,
  payload: readonly { path: string; source: string }[],
  report: RingReport,
): Promise<void> {
  const { title, kernel, attachments, files, ...guest } = boot;
  report.heading(title);
  await runGuestSuite(
    {
      kernel,
      ...guest,
      files: files.map((file) => join(HERE, `${file}.guest.test.ts`)),
      payload,
      env: { KERNEL_ATTACHMENTS: attachments },
      timeoutMs: GUEST_BUDGET_MS,
    },
    report,
  );
}
