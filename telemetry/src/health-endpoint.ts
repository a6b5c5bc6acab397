import { createHttpEndpoint, type EndpointAddress, type HttpEndpoint } from './http-endpoint.ts';

/** What keeps a program from being in order, in words; nothing when it is. Asked at each probe, nothing is latched. */
export interface HealthChecks {
  /** What a restart would help against. */
  readonly live: () => readonly string[];
  /** What keeps it from doing its work. */
  readonly ready: () => readonly string[];
}

/** Answers `/healthz` and `/readyz`, with 503 and the reasons where something is not in order. */
export function createHealthEndpoint(address: EndpointAddress, checks: HealthChecks): HttpEndpoint {
  return createHttpEndpoint({
    address,
    nothing: '/healthz and /readyz are here\n',
    answer(path) {
      const check = path === '/healthz' ? checks.live : path === '/readyz' ? checks.ready : undefined;
      if (check === undefined) return undefined;
      const problems = check();
      return problems.length === 0
        ? { status: 200, text: 'ok\n' }
        : { status: 503, text: problems.map((problem) => `${problem}\n`).join('') };
    },
  });
}
