import {
  status,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServerWritableStream,
} from '@grpc/grpc-js';
import { messageCodec } from './message-codec.ts';
import { method } from './service-method.ts';

const SERVICE = 'grpc.health.v1.Health';

export interface HealthRequest {
  /** Empty for the server as a whole. */
  readonly service: string;
}

export interface HealthResponse {
  /** Number of the enum in proto/health.proto. */
  readonly status: number;
}

export const HEALTH_SERVING = 1;
export const HEALTH_NOT_SERVING = 2;
const HEALTH_SERVICE_UNKNOWN = 3;

/** Answers that a watcher has not read; one with more is let go. */
const MAX_UNREAD = 8;

const request = messageCodec<HealthRequest>('grpc.health.v1.HealthCheckRequest');
const response = messageCodec<HealthResponse>('grpc.health.v1.HealthCheckResponse');

/** The methods of gRPC's health checking protocol. */
export const healthMethods = {
  check: method(SERVICE, 'Check', request, response),
  watch: method(SERVICE, 'Watch', request, response, { responseStream: true }),
};

/** Tells health checkers whether the server serves. */
export interface HealthService {
  readonly handlers: {
    readonly check: handleUnaryCall<HealthRequest, HealthResponse>;
    readonly watch: handleServerStreamingCall<HealthRequest, HealthResponse>;
  };
  setServing(serving: boolean): void;
}

/**
 * Health of one service and of the server as a whole, which are one and the same. Not the published package: that
 * one reads its .proto file at run time, which a bundle does not hold.
 */
export function createHealthService(serviceName: string): HealthService {
  let serving = false;
  const watchers = new Map<ServerWritableStream<HealthRequest, HealthResponse>, string>();
  const statusOf = (service: string): number => {
    if (service !== '' && service !== serviceName) return HEALTH_SERVICE_UNKNOWN;
    return serving ? HEALTH_SERVING : HEALTH_NOT_SERVING;
  };
  return {
    handlers: {
      check(call, reply) {
        const state = statusOf(call.request.service);
        if (state === HEALTH_SERVICE_UNKNOWN)
          reply({ code: status.NOT_FOUND, details: 'there is no such service here' });
        else reply(null, { status: state });
      },
      watch(call) {
        watchers.set(call, call.request.service);
        call.on('close', () => watchers.delete(call));
        call.on('cancelled', () => watchers.delete(call));
        call.write({ status: statusOf(call.request.service) });
      },
    },
    setServing(now) {
      if (now === serving) return;
      serving = now;
      for (const [call, service] of watchers) {
        if (call.writableLength < MAX_UNREAD) call.write({ status: statusOf(service) });
        else call.end();
      }
    },
  };
}
