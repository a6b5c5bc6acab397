import type { Writable } from 'node:stream';

/** Text that goes to a stream as fast as its reader takes it, and no further: the rest is dropped. */
export interface BoundedOutput {
  /** Takes a text of whole lines; false if it was dropped because the reader is too slow or gone. */
  write(text: string): boolean;
  /** Resolves when everything taken so far has been handed on, or after `timeoutMs`. */
  flush(timeoutMs: number): Promise<void>;
}

/**
 * Puts a bound on what waits in memory for a stream's reader. Errors of the stream, such as a reader that went
 * away, are given to `onError` and end nothing.
 */
export function boundedOutput(
  stream: Writable,
  maxWaitingBytes: number,
  onError: (error: Error) => void = () => undefined,
): BoundedOutput {
  stream.on('error', onError);
  return {
    write(text) {
      if (!stream.writable || stream.writableLength + Buffer.byteLength(text) > maxWaitingBytes) return false;
      stream.write(text);
      return true;
    },
    async flush(timeoutMs) {
      if (!stream.writable || stream.writableLength === 0) return;
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const timer = setTimeout(() => resolve(undefined), timeoutMs);
      stream.write('', () => resolve(undefined));
      await promise;
      clearTimeout(timer);
    },
  };
}
