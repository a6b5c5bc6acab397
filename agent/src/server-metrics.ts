import type { RpcServer } from '@runtime-enforcer/rpc/rpc-server';
import { Counter, type Registry } from 'prom-client';

export type ServerCounters = RpcServer['counters'];

const RESULTS = {
  accepted: 'accepted',
  handshakesFailed: 'handshake_failed',
  connectionsRefused: 'refused',
} as const satisfies Record<keyof ServerCounters, string>;

/** Adds what became of connections to the gRPC server to a registry. */
export function observeServer(registry: Registry, counters: ServerCounters): void {
  new Counter({
    name: 'runtime_enforcer_grpc_connections_total',
    help: 'Connections to the gRPC server: accepted, without a good certificate, or one too many.',
    labelNames: ['result'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [name, result] of Object.entries(RESULTS) as [keyof ServerCounters, string][]) {
        this.inc({ result }, counters[name]);
      }
    },
  });
}
