import type { MethodDefinition } from '@grpc/grpc-js';
import type { MessageCodec } from './message-codec.ts';

/** One method with a single request, as grpc-js wants it described. */
export function method<Request, Response>(
  service: string,
  name: string,
  request: MessageCodec<Request>,
  response: MessageCodec<Response>,
  { responseStream = false } = {},
): MethodDefinition<Request, Response> {
  return {
    path: `/${service}/${name}`,
    requestStream: false,
    responseStream,
    requestSerialize: (value) => request.encode(value),
    requestDeserialize: (bytes) => request.decode(bytes),
    responseSerialize: (value) => response.encode(value),
    responseDeserialize: (bytes) => response.decode(bytes),
  };
}
