import { Counter, Histogram, type Registry } from 'prom-client';
import type { NriCounter, NriCounters } from './nri/counters.ts';

/** In seconds. The runtime waits two by default, and a container starts that much later. */
const ANSWER_BUCKETS = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2];

/** Counters of the connection to the container runtime, in a registry. */
export function nriCounters(registry: Registry): NriCounters {
  const make = (name: string, help: string, labelNames: readonly string[]): Counter =>
    new Counter({
      name: `runtime_enforcer_nri_${name}_total`,
      help,
      labelNames: [...labelNames],
      registers: [registry],
    });
  const metrics: Readonly<Record<NriCounter, Counter>> = {
    connects: make('connects', 'Connections made to the NRI socket.', []),
    disconnects: make('disconnects', 'Connections to the NRI socket that ended.', []),
    requests: make('requests', 'Calls of the container runtime.', ['method']),
    errors: make('errors', 'Calls of the container runtime that were answered with an error.', ['method']),
    deadline_exceeded: make('deadline_exceeded', 'Calls that were answered because their time had run out.', [
      'method',
    ]),
    malformed_frames: make('malformed_frames', 'Input from the NRI socket that was not understood.', []),
  };
  const answers = new Histogram({
    name: 'runtime_enforcer_nri_answer_seconds',
    help: 'How long the container runtime waited for an answer.',
    labelNames: ['method'],
    buckets: ANSWER_BUCKETS,
    registers: [registry],
  });
  return {
    increment(counter, method) {
      metrics[counter].inc(method === undefined ? {} : { method });
    },
    answered: (method, seconds) => answers.observe({ method }, seconds),
  };
}
