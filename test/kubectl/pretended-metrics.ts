import { createServer, type ServerResponse } from 'node:http';
import { networkInterfaces } from 'node:os';
import { freePorts } from '../cluster/port.ts';

/** What an agent with nothing wrong says of itself, as far as doctor reads it. */
export const HEALTHY_METRICS = `runtime_enforcer_attached 1
runtime_enforcer_nri_connected 1
runtime_enforcer_degraded 0
runtime_enforcer_recursion_misses_total 0
runtime_enforcer_role{role="owner"} 1
runtime_enforcer_role{role="released"} 0
runtime_enforcer_override_info{override="none"} 1
runtime_enforcer_attachment_info{kind="lsm",kernel="6.12"} 1
`;

/** The metrics of all agents, where the API server reaches them. */
export interface PretendedMetrics {
  readonly address: string;
  readonly port: number;
  /** What they say. */
  text: string;
  /** How they answer; by `text` when undefined. */
  answer: ((response: ServerResponse) => void) | undefined;
  stop(): void;
}

/** @throws Error when this machine has no address besides that of the loopback interface, which pods cannot have */
export async function pretendMetrics(): Promise<PretendedMetrics> {
  const address = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (address === undefined) throw new Error('this machine has no address by which pods could be reached');
  const [port = 0] = await freePorts(1);
  const server = createServer((_request, response) => {
    if (metrics.answer === undefined) response.end(metrics.text);
    else metrics.answer(response);
  });
  const metrics: PretendedMetrics = {
    ...{ address, port, text: HEALTHY_METRICS, answer: undefined },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return metrics;
}
