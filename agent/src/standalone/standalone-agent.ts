import { PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import type { RunOptions } from '../commands/run-options.ts';
import { createLearner } from '../learning/learner.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import type { LineFile } from '../violations/line-file.ts';
import { createViolationJournal } from '../violations/violation-journal.ts';
import type { JournalLine } from '../violations/violation-line.ts';
import type { AgentStatus } from '../node/agent-status.ts';
import type { KernelSide } from '../node/kernel-side.ts';
import { createNodeAgent } from '../node/node-agent.ts';
import { createPolicyDirectory } from './policy-directory.ts';
import { createPolicyLoader } from './policy-loader.ts';
import { createPolicyParser } from './policy-parser.ts';
import { createPolicySet } from './policy-set.ts';

export interface StandaloneAgent {
  /**
   * Loads the policies, then answers the container runtime; resolves when its containers are bound. Rejects with an
   * error that says what to do; what had been started is then to be stopped as usual.
   */
  start(): Promise<void>;
  /** Stops everything but the kernel side, and writes what waits. */
  stop(): Promise<void>;
  status(): Promise<AgentStatus>;
}

/** Puts the parts of an agent together that takes its policies from a directory. */
export function createStandaloneAgent(parts: {
  options: RunOptions;
  kernel: KernelSide;
  /** What was written of violations before, by an earlier agent. */
  recovered: readonly JournalLine[];
  file: LineFile | undefined;
  writeOut: (line: string) => boolean;
  log: Logger;
  metrics: AgentMetrics;
}): StandaloneAgent {
  const { options, kernel, recovered, file, writeOut, log, metrics } = parts;
  const { counters } = metrics;
  const { nodeName } = options;
  const policies = createPolicySet();
  const parser = createPolicyParser();

  const journal = createViolationJournal({
    nodeName,
    write: (line) => {
      const text = JSON.stringify(line);
      if (!writeOut(`${text}\n`)) counters.add('violation_lines_dropped_stdout');
      file?.write(text);
    },
    log,
    counters,
  });
  journal.recover(recovered);

  const isPromoted = (namespace: string, name: string): boolean => {
    if (policies.policy(`${namespace}/${name}`) !== undefined) return true;
    for (const { metadata } of policies.policies()) {
      if (metadata.namespace === namespace && metadata.labels.get(PROMOTED_FROM_LABEL) === name) return true;
    }
    return false;
  };
  const learner =
    options.learnDirectory === undefined
      ? undefined
      : createLearner({ directory: options.learnDirectory, nodeName, isPromoted, log, counters });

  const node = createNodeAgent({
    ...{ options, kernel, journal, learner, log, metrics },
    policy: (name) => policies.policy(name),
  });
  const directory =
    options.policyDirectory === undefined
      ? undefined
      : createPolicyDirectory({
          directory: options.policyDirectory,
          onChanges: (changes) => loader.load(changes),
          log,
          counters,
        });
  const loader = createPolicyLoader({
    ...{ parser, policies, log, counters },
    directory: options.policyDirectory ?? '',
    effect: node.effect,
  });

  return {
    async start() {
      await learner?.start();
      await directory?.start();
      kernel.table.complete();
      node.observe();
      await node.start();
    },
    async stop() {
      await directory?.stop();
      await node.stop();
      await learner?.stop();
      await parser.stop();
    },
    status: () => node.status(),
  };
}
