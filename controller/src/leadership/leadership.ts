import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { leaseElector, type LeaseTimings } from '@runtime-enforcer/kube/lease-elector';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import { leaderClient } from './leader-client.ts';
import type { LeaderTask } from './leader-task.ts';

/** The public reference's, so that two versions never lead at once. */
const LEASE_NAME = '4e873589.rancher.io';

export interface LeadershipOptions {
  readonly client: ApiClient;
  /** The namespace of the lease. */
  readonly namespace: string;
  /** Different in every process. */
  readonly identity: string;
  /** Absent: there is one process only, which leads. */
  readonly timings: LeaseTimings | undefined;
  /** Makes the work of a leadership. @param client writes only while this process leads */
  readonly tasks: (client: ApiClient) => readonly LeaderTask[];
  readonly log: Logger;
}

/** Runs the leader's tasks while this process leads, and only then. */
export interface Leadership {
  start(): void;
  /** Ends the tasks, and gives the lease back. */
  stop(): Promise<void>;
  isLeader(): boolean;
}

/** See {@link Leadership}. */
export function createLeadership(options: LeadershipOptions): Leadership {
  const { client, namespace, identity, timings, tasks, log } = options;
  /** What leaderships do follows one after the other: the tasks of one have ended before those of the next begin. */
  let tail: Promise<void> = Promise.resolve();
  let running: readonly LeaderTask[] = [];
  let isStopping = false;
  /** Without an election. */
  let isAlone = false;

  const elector =
    timings &&
    leaseElector({
      client,
      namespace,
      name: LEASE_NAME,
      identity,
      timings,
      onStarted: (leadership) => begin(() => !leadership.aborted),
      onStopped: end,
      onTrouble: (err) => log.warn({ err }, 'the lease cannot be read or written now'),
    });
  const isLeader = (): boolean => elector?.isLeader() ?? isAlone;

  function begin(isCurrent: () => boolean): void {
    tail = tail.then(() => {
      if (!isCurrent() || isStopping) return;
      log.info({ identity }, 'leading');
      running = tasks(leaderClient(client, isLeader));
      for (const task of running) task.start();
    });
  }

  function end(reason: string): void {
    tail = tail.then(async () => {
      const ended = running;
      running = [];
      if (ended.length > 0) log.info({ identity, reason }, 'no longer leading');
      await Promise.all(ended.map(stopTask));
    });
  }

  async function stopTask(task: LeaderTask): Promise<void> {
    try {
      await task.stop();
    } catch (err) {
      log.error({ err, task: task.name }, 'task not stopped cleanly');
    }
  }

  return {
    start() {
      if (elector !== undefined) {
        elector.start();
        return;
      }
      isAlone = true;
      begin(() => true);
    },
    async stop() {
      isStopping = true;
      // The lease goes to another only when nothing of ours is under way.
      end('stopping');
      await tail;
      isAlone = false;
      await elector?.stop();
      await tail;
    },
    isLeader,
  };
}
