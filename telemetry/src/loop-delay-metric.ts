import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

/** Resolution of the event loop's delay, in milliseconds. */
const LOOP_DELAY_RESOLUTION_MS = 10;
/** How long a delay counts as recent. */
const LOOP_DELAY_WINDOW_MS = 60_000;
const NANOSECONDS = 1e9;

/** Starts measuring how late the event loop is, as a metric of a registry. @returns ends it */
export function observeLoopDelay(registry: Registry): () => void {
  const histogram = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MS });
  histogram.enable();
  let previousMax = 0;
  const timer = setInterval(() => {
    previousMax = histogram.max;
    histogram.reset();
  }, LOOP_DELAY_WINDOW_MS);
  timer.unref();
  const seconds = (nanoseconds: number): number =>
    Number.isFinite(nanoseconds) ? nanoseconds / NANOSECONDS : 0;
  new Gauge({
    name: 'runtime_enforcer_event_loop_delay_seconds',
    help: 'How late the event loop was at most in that share of times, in the last one to two minutes.',
    labelNames: ['share'],
    registers: [registry],
    collect() {
      const clock = LOOP_DELAY_RESOLUTION_MS / 1000;
      for (const percent of [50, 99]) {
        const delay = seconds(histogram.percentile(percent)) - clock;
        this.set({ share: String(percent / 100) }, Math.max(delay, 0));
      }
      this.set({ share: '1' }, Math.max(seconds(Math.max(previousMax, histogram.max)) - clock, 0));
    },
  });
  return () => {
    clearInterval(timer);
    histogram.disable();
  };
}
