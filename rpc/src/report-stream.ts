import type { ServerWritableStream } from '@grpc/grpc-js';

/** A reader that takes none of a report for so long is gone, or means harm. */
const WRITE_MS = 60_000;

/** The transport gave a report up. */
export class ReaderGoneError extends Error {
  override readonly name = 'ReaderGoneError';
}

/**
 * Sends one message and waits until the connection has taken it, so that a stream never holds more than one.
 *
 * Rejects with a ReaderGoneError when the call has ended, or when the reader does not read; `onStalled` is then
 * called as well: the connection is of no use any more.
 */
export async function sendReport<T>(
  call: ServerWritableStream<unknown, T>,
  report: T,
  { onStalled, writeMs = WRITE_MS }: { onStalled: () => void; writeMs?: number | undefined },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const done = (settle: () => void): void => {
      clearTimeout(timer);
      call.off('cancelled', gone);
      settle();
    };
    const gone = (): void => done(() => reject(new ReaderGoneError('the reader ended the call')));
    const timer = setTimeout(() => {
      done(() => reject(new ReaderGoneError(`the reader took nothing for ${writeMs} ms`)));
      onStalled();
    }, writeMs);
    if (call.cancelled || call.destroyed) {
      gone();
      return;
    }
    call.once('cancelled', gone);
    call.write(report, (error?: Error | null) => {
      if (error) done(() => reject(new ReaderGoneError('the report was not sent', { cause: error })));
      else done(resolve);
    });
  });
}
