import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { eventRecorder } from '@runtime-enforcer/kube/event-recorder';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { LeaderTask } from './leadership/leader-task.ts';
import type { ControllerMetrics } from './metrics.ts';
import { createPromotion, type Promotion } from './promotion/promotion-loop.ts';

const FLUSH_MS = 1_000;
const COMPONENT = 'runtime-enforcer-controller';

export interface LeaderTasksContext {
  /** The pod, for Events. */
  readonly host: string;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
}

/** Everything that only the leader does. */
export interface LeaderTasks {
  /** @param client writes only while this process leads */
  create(client: ApiClient): readonly LeaderTask[];
  promotionDepth(): number;
}

/** See {@link LeaderTasks}. */
export function leaderTasks({ host, log, metrics }: LeaderTasksContext): LeaderTasks {
  let promotion: Promotion | undefined;
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
      return [
        created,
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
  };
}
