import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { NodeAgent } from '../node/node-agent.ts';
import type { PolicyWatch } from './policy-watch.ts';

/** How often the whole node is compared, and a quarter more or less by chance. */
const COMPARE_MS = 300_000;
const JITTER = 0.25;

/**
 * Now and then everything is compared: the runtime's containers with the cgroups and the kernel's places for them, and
 * the policies of the API server with those that the kernel holds. What differs is put right, counted and logged.
 */
export interface NodeComparison {
  start(): void;
  stop(): Promise<void>;
}

export function createNodeComparison(parts: {
  node: Pick<NodeAgent, 'resynchronize'>;
  watch: Pick<PolicyWatch, 'compare'>;
  log: Logger;
  failures: (place: string) => void;
  everyMs?: number;
}): NodeComparison {
  const { node, watch, log, failures, everyMs = COMPARE_MS } = parts;
  let timer: NodeJS.Timeout | undefined;
  let comparing: Promise<void> = Promise.resolve();
  let isStopped = false;

  const compare = async (): Promise<void> => {
    try {
      const policies = watch.compare();
      for (let i = 0; i < policies; i++) failures('policy_difference');
      if (policies > 0)
        log.error(
          { policies },
          'policies in the kernel were not those of the API server; they are loaded anew',
        );
      await node.resynchronize();
    } catch (error) {
      failures('node_comparison');
      log.warn({ err: error }, 'the runtime could not be asked for all its containers; trying again later');
    }
  };
  const schedule = (): void => {
    const waitMs = everyMs * (1 + JITTER * (2 * Math.random() - 1));
    timer = setTimeout(() => {
      comparing = compare().then(() => {
        if (!isStopped) schedule();
      });
    }, waitMs);
  };

  return {
    start: schedule,
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await comparing;
    },
  };
}
