import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { eventRecorder } from '@runtime-enforcer/kube/event-recorder';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { LeaderTask } from './leadership/leader-task.ts';
import type { ControllerMetrics } from './metrics.ts';
import { createPromotion, type Promotion } from './promotion/promotion-loop.ts';
import { createStatusLoop, type StatusLoop, type StatusLoopOptions } from './status/status-loop.ts';
import type { StatusGauges } from './status/status-metrics.ts';

const FLUSH_MS = 1_000;
const COMPONENT = 'runtime-enforcer-controller';

export interface LeaderTasksContext {
  /** The pod, for Events. */
  readonly host: string;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  readonly status: Omit<StatusLoopOptions, 'client' | 'events' | 'log'>;
}

/** Everything that only the leader does. */
export interface LeaderTasks {
  /** @param client writes only while this process leads */
  create(client: ApiClient): readonly LeaderTask[];
  promotionDepth(): number;
  /** Undefined where this process does not lead. */
  statusGauges(): StatusGauges | undefined;
}

/** See {@link LeaderTasks}. */
export function leaderTasks({ host, log, metrics, status }: LeaderTasksContext): LeaderTasks {
  let promotion: Promotion | undefined;
  let statusLoop: StatusLoop | undefined;
  return {
    create(client) {
      const events = eventRecorder({
        client,
        component: COMPONENT,
        host,
        onLost: ({ reason, subject }, err) => log.warn({ err, reason, subject }, 'event lost'),
      });
      const created = createPromotion({
        client,
        events,
        log,
        observe: (outcome, durationMs) => metrics.promotion(outcome, durationMs),
      });
      promotion = created;
      const loop = createStatusLoop({ ...status, client, events, log });
      statusLoop = loop;
      return [
        created,
        {
          ...loop,
          async stop() {
            if (statusLoop === loop) statusLoop = undefined;
            await loop.stop();
          },
        },
        {
          name: 'events',
          start: () => undefined,
          async stop() {
            // What was just said of an object should still be read there.
            await Promise.race([events.flush(), sleep(FLUSH_MS, undefined, { ref: false })]);
            await events.stop();
          },
        },
      ];
    },
    promotionDepth: () => promotion?.depth() ?? 0,
    statusGauges: () => statusLoop?.gauges(),
  };
}
