import { join } from 'node:path';
import { release } from 'node:os';
import { EVENTS_PER_SECOND, measureStarts, tellIfBusy } from './container-starts.ts';
import { startEchoControl } from './echo-control.ts';
import type { Measured } from './figure.ts';
import { inTemporaryDirectory, startHostAgent } from './host-agent.ts';
import { createHostContainers } from './host-containers.ts';
import { EVENTS_VARIABLE } from './host-kernel-side.ts';
import { writePolicyFiles } from './policy-files.ts';

const POLICIES = 100;
/** Run all the time; the records are about them. Half of them are learned. */
const RUNNING = 32;
/** Are started and removed over and over. */
const STARTING = 16;

/** How long the agent takes to answer StartContainer while the kernel tells of new execs all the time. */
export async function benchNri(report: (measured: Measured) => void): Promise<void> {
  const policies = Array.from({ length: RUNNING + STARTING }, (_, index) =>
    index % 2 === 0 ? `policy-${index % POLICIES}` : undefined,
  );
  const made = await createHostContainers(policies);
  try {
    await inTemporaryDirectory(async (directory) => {
      await writePolicyFiles(join(directory, 'policies'), POLICIES);
      const running = made.containers.slice(0, RUNNING);
      const agent = await startHostAgent({
        directory,
        pods: running.map(({ pod }) => pod),
        containers: running.map(({ container }) => ({ ...container, state: 'running' })),
        env: { [EVENTS_VARIABLE]: String(EVENTS_PER_SECOND) },
      });
      const control = await startEchoControl(directory);
      try {
        const starting = made.containers.slice(RUNNING);
        const { p50, p99, echoP99, eventsPerSecond } = await measureStarts(agent, control, starting);
        const figure = (name: string, value: number, unit: string): void =>
          report({ figure: `nri.${name}`, value, unit, kernel: release() });
        figure('echo_p99_ms', echoP99, 'ms');
        tellIfBusy(echoP99);
        figure('start_p50_ms', p50, 'ms');
        figure('start_p99_ms', p99, 'ms');
        figure('events_per_second', eventsPerSecond, '1/s');
      } finally {
        await control.stop();
        await agent.stop();
      }
    });
  } finally {
    await made.remove();
  }
}
