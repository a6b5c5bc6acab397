import type { RunOptions } from '@runtime-enforcer/agent/commands/run-options';
import { findNodeFit, type OpenKernelSide } from '@runtime-enforcer/agent/node/kernel-side';

/** Opens the kernel side as a starting agent does, with what a user may choose. */
export async function openKernel(
  choice: Pick<RunOptions, 'attachment'> & Partial<Pick<RunOptions, 'capacity'>>,
): Promise<OpenKernelSide> {
  const complain = (fields: object, message: string): void =>
    console.error(
      message,
      JSON.stringify(fields, (_, value: unknown) => String(value)),
    );
  const node = findNodeFit({
    options: {
      nriSocketPath: '/run/nri.sock',
      nriPluginIndex: '00',
      onExit: 'release',
      stateDirectory: '/run/bench-agent',
      logLevel: 'warn',
      failOpen: false,
      nodeName: 'bench',
      // Learning is on; nothing is written there.
      learnDirectory: '/run/bench-learned',
      ...choice,
    },
    log: { debug: () => undefined, info: () => undefined, warn: complain, error: complain },
    failures: (place) => console.error(`the kernel side survived a failure: ${place}`),
  });
  const ownership = await node.ownNow();
  const kernel = await node.open();
  return {
    ...kernel,
    async close(how) {
      await kernel.close(how);
      ownership.release();
    },
  };
}
