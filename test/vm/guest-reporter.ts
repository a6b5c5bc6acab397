import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';
import { type GuestEvent, encodeGuestEvent } from './guest-event.ts';

/** A parent that failed only because a child did: the child is the one that counts. */
const FAILED_THROUGH_CHILDREN = 'subtestsFailed';

/** A reporter for node:test that prints one record per test for the host; suites count only when they fail themselves. */
export async function* guestReporter(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const names: string[] = [];
  for await (const { type, data } of source) {
    if (type === 'test:dequeue' && data.type === 'test') {
      yield encodeGuestEvent({ event: 'running', name: data.name });
    } else if (type === 'test:start') {
      names.splice(data.nesting, Infinity, data.name);
    } else if (type === 'test:pass' || type === 'test:fail') {
      const event = resultOf([...names.slice(0, data.nesting), data.name].join(' › '), type, data);
      if (event !== undefined) yield encodeGuestEvent(event);
    }
  }
  yield encodeGuestEvent({ event: 'end' });
}

interface TestOutcome {
  skip?: string | boolean;
  todo?: string | boolean;
  details: { type?: string | undefined; duration_ms: number; error?: Error };
}

function resultOf(
  name: string,
  type: 'test:pass' | 'test:fail',
  outcome: TestOutcome,
): GuestEvent | undefined {
  const { details, skip, todo } = outcome;
  const durationMs = details.duration_ms;
  const left = skip ?? todo;
  if (left !== undefined && left !== false) {
    const reason = typeof left === 'string' && left !== '' ? left : 'left out by its author';
    return details.type === 'suite' ? undefined : { event: 'skipped', name, reason };
  }
  if (type === 'test:pass')
    return details.type === 'suite' ? undefined : { event: 'passed', name, durationMs };
  const { error } = details;
  if (error !== undefined && 'failureType' in error && error.failureType === FAILED_THROUGH_CHILDREN)
    return undefined;
  const cause = error?.cause ?? error ?? new Error('failed without an error');
  return { event: 'failed', name, durationMs, message: describe(cause) };
}

function describe(cause: unknown): string {
  return cause instanceof Error ? inspect(cause, { depth: 4 }) : String(cause);
}
