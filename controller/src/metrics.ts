import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { AdmissionResult } from './admission/admission-server.ts';
import type { PromotionOutcome } from './promotion/promotion-step.ts';
import { CONTROLLER_VERSION } from './version.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const MS_PER_SECOND = 1_000;

/** What the controller tells about itself in Prometheus' form. */
export interface ControllerMetrics {
  /** Where further parts register theirs. */
  readonly registry: Registry;
  admission(route: string, result: AdmissionResult, durationMs: number): void;
  promotion(outcome: PromotionOutcome | 'error', durationMs: number): void;
}

export interface MetricsSources {
  readonly isLeader: () => boolean;
  /** Proposals that wait to be looked at; 0 where this process does not lead. */
  readonly promotionDepth: () => number;
}

/** @returns metrics in a registry of their own */
export function controllerMetrics({ isLeader, promotionDepth }: MetricsSources): ControllerMetrics {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: 'runtime_enforcer_controller_build_info',
    help: 'The version of the controller.',
    labelNames: ['version'],
    registers,
  }).set({ version: CONTROLLER_VERSION }, 1);
  new Gauge({
    name: 'runtime_enforcer_controller_leader',
    help: '1 where this process leads.',
    registers,
    collect() {
      this.set(isLeader() ? 1 : 0);
    },
  });
  new Gauge({
    name: 'runtime_enforcer_controller_promotion_queue_depth',
    help: 'Proposals that wait to be looked at.',
    registers,
    collect() {
      this.set(promotionDepth());
    },
  });
  const outcomes = new Counter({
    name: 'runtime_enforcer_controller_promotions_total',
    help: 'Proposals that were looked at, by what became of them.',
    labelNames: ['outcome'],
    registers,
  });
  const promotions = new Histogram({
    name: 'runtime_enforcer_controller_promotion_duration_seconds',
    help: 'How long promotions took, from the look at the proposal to its removal.',
    buckets: SECONDS,
    registers,
  });
  const reviews = new Histogram({
    name: 'runtime_enforcer_controller_admission_duration_seconds',
    help: 'How long admission reviews took, by path and verdict.',
    labelNames: ['path', 'result'],
    buckets: SECONDS,
    registers,
  });
  return {
    registry,
    admission: (path, result, durationMs) => reviews.observe({ path, result }, durationMs / MS_PER_SECOND),
    promotion(outcome, durationMs) {
      outcomes.inc({ outcome });
      if (outcome === 'promoted') promotions.observe(durationMs / MS_PER_SECOND);
    },
  };
}
