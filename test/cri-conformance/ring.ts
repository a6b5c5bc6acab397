import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunRing } from '../rings/report.ts';
import { agentPayload } from '../runtime/agent-payload.ts';
import { runGuestSuite } from '../vm/guest-suite.ts';
import { printProgress } from '../vm/progress.ts';
import { runDirectory } from '../vm/run-directory.ts';
import { critestBinary } from './critest-binary.ts';
import { conformanceImage } from './image.ts';
import { CRITEST_IN_GUEST, IMAGE_IN_GUEST } from './names.ts';

const GUEST_BUDGET_MS = 2_400_000;
const TEST_BUDGET_MS = 1_200_000;

/** The ring of CRI conformance: Kubernetes' tests of container runtimes pass beside the agent as they do without. */
export const run: RunRing = async (report) => {
  const critest = await critestBinary(printProgress);
  const agent = await agentPayload();
  const directory = await runDirectory();
  try {
    const image = join(directory, 'conformance-image.tar');
    await writeFile(image, await conformanceImage());
    await runGuestSuite(
      {
        ...{ kernel: '6.12', containerd: true, timeoutMs: GUEST_BUDGET_MS, testTimeoutMs: TEST_BUDGET_MS },
        payload: [
          ...agent,
          { path: CRITEST_IN_GUEST, source: critest },
          { path: IMAGE_IN_GUEST, source: image },
        ],
        files: [join(import.meta.dirname, 'conformance.guest.test.ts')],
      },
      report,
    );
    return report.result();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};
