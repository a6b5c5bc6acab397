import { join } from 'node:path';
import type { RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { printProgress } from '../vm/progress.ts';
import { NRI_MODULES, nriRuntimeBinary, type NriVersion } from './nri-runtime-binary.ts';

/** The nri ring: the agent's plugin against the runtime side of NRI that containerd and CRI-O are built with. */
export const run: RunRing = async (report) => {
  for (const version of Object.keys(NRI_MODULES) as NriVersion[]) {
    await nriRuntimeBinary(version, printProgress);
  }
  return await runVitestRing(report, ['--config', join(import.meta.dirname, 'vitest.config.ts')]);
};
