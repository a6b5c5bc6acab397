import protobuf from 'protobufjs/light.js';
import { containerFromMessage, nriCodecs, podFromMessage } from './messages.ts';
import type { NriContainer, NriPodSandbox } from './messages.ts';

/** Most bytes that all parts of one Synchronize may hold. */
export const SYNCHRONIZE_MAX_BYTES = 64 * 1_048_576;

/** Most pods and containers that all parts of one Synchronize may name. */
export const SYNCHRONIZE_MAX_OBJECTS = 65_536;

export interface RuntimeState {
  pods: NriPodSandbox[];
  containers: NriContainer[];
}

/**
 * Collects the parts of a Synchronize, which a runtime splits at 4 MiB.
 *
 * @returns a function that takes the next part's payload and returns undefined while more parts
 *   follow, and the whole state after the last one. It throws an Error for bytes that are no
 *   SynchronizeRequest and for a state beyond the limits above; the parts so far are dropped then.
 */
export function createSynchronizeCollector(): (payload: Uint8Array) => RuntimeState | undefined {
  let state: RuntimeState = { pods: [], containers: [] };
  let bytes = 0;
  let objects = 0;

  const reset = (): void => {
    state = { pods: [], containers: [] };
    bytes = objects = 0;
  };

  return (payload) => {
    try {
      bytes += payload.length;
      if (bytes > SYNCHRONIZE_MAX_BYTES) {
        throw new Error(`Synchronize holds more than ${SYNCHRONIZE_MAX_BYTES} bytes`);
      }
      // Before decoding: an empty message takes two bytes on the wire and hundreds in memory.
      objects += countFields(payload);
      if (objects > SYNCHRONIZE_MAX_OBJECTS) {
        throw new Error(`Synchronize names more than ${SYNCHRONIZE_MAX_OBJECTS} pods and containers`);
      }
      const part = nriCodecs().synchronize.decode(payload);
      for (const pod of part.pods) state.pods.push(podFromMessage(pod));
      for (const container of part.containers) state.containers.push(containerFromMessage(container));
      if (part.more) return undefined;
    } catch (error) {
      reset();
      throw error;
    }
    const complete = state;
    reset();
    return complete;
  };
}

function countFields(message: Uint8Array): number {
  const reader = protobuf.Reader.create(message);
  let fields = 0;
  while (reader.pos < reader.len) {
    reader.skipType(reader.uint32() & 7);
    fields += 1;
  }
  return fields;
}
