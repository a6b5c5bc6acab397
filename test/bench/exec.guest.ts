import { release } from 'node:os';
import { builtFiles } from '@runtime-enforcer/agent/built-files';
import { loadNative, type Native } from '@runtime-enforcer/agent/kernel/native';
import type { OpenKernelSide } from '@runtime-enforcer/agent/node/kernel-side';
import {
  attachedPrograms,
  boundPlace,
  countInstructions,
  enforcedPlace,
  PATHS,
  stormIn,
  stormOnHost,
  UNLISTED,
} from './checked-exec.ts';
import { costPerExec, type Storm } from './exec-cost.ts';
import { openKernel } from './guest-kernel.ts';

const SERVICE = '/system.slice/bench.service';
/** As deep as a container's cgroup, so that its own and its ancestors' are looked up. */
const SESSION_SERVICE = '/user.slice/user-0.slice/user@0.service/bench.service';

function report(figure: string, value: number): void {
  console.log(JSON.stringify({ figure, value, unit: 'instructions', kernel: release() }));
}

/**
 * Allowed execs with one attachment, under its own name. What this kernel gets unless told otherwise is measured
 * whole, and is the figure without the attachment's name too.
 */
async function measureAttachment(native: Native, attachment: 'auto' | 'fmod_ret'): Promise<void> {
  const kernel = await openKernel({ attachment });
  try {
    const { kind } = kernel.enforcer.attachment;
    const programs = attachedPrograms(native, kernel);
    console.log(`attached: ${programs.map(({ name }) => name).join(', ')}`);
    const place = await enforcedPlace(kernel, `allowed-${attachment.replace('_', '-')}`, 'protect');
    for (const [components, path] of Object.entries(PATHS)) {
      const cost = await costPerExec(programs, stormIn(place, path), 'ran');
      if (attachment === 'auto') report(`exec.allowed.${components}`, cost);
      report(`exec.allowed.${components}.${kind}`, cost);
    }
    if (attachment === 'auto') await measureOthers(native, kernel, stormIn(place, UNLISTED));
    await place.end();
  } finally {
    await kernel.close({ release: true });
  }
}

/** What else the default attachment does at an exec. */
async function measureOthers(native: Native, kernel: OpenKernelSide, denied: Storm): Promise<void> {
  const programs = attachedPrograms(native, kernel);
  report('exec.untracked', await costPerExec(programs, stormOnHost(SERVICE), 'ran'));
  report('exec.untracked.session', await costPerExec(programs, stormOnHost(SESSION_SERVICE), 'ran'));
  report('exec.denied.3', await costPerExec(programs, denied, 'denied'));
  const monitored = await enforcedPlace(kernel, 'monitored', 'monitor');
  report('exec.monitored_repeat.3', await costPerExec(programs, stormIn(monitored, UNLISTED), 'ran'));
  await monitored.end();
  const learned = await boundPlace(kernel, 'learned', undefined, 'learning');
  report('exec.learned_repeat.3', await costPerExec(programs, stormIn(learned, UNLISTED), 'ran'));
  await learned.end();
}

/** What the kernel itself takes to call a program that does nothing. */
async function measureEmpty(native: Native): Promise<void> {
  const object = native.load(builtFiles().probeObject, { programs: ['probe_lsm'] });
  const program = object.programs.get('probe_lsm');
  if (program === undefined) throw new Error('the probe object has no probe_lsm');
  const link = program.attach();
  report('exec.empty_program', await costPerExec([program], stormOnHost(SERVICE), 'ran'));
  link.close();
  object.close();
}

async function main(): Promise<void> {
  const native = loadNative(builtFiles().addon);
  countInstructions();
  await measureAttachment(native, 'auto');
  await measureAttachment(native, 'fmod_ret');
  await measureEmpty(native);
}

await main();
