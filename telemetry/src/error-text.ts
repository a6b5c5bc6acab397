import { inspect } from 'node:util';

/** Longest chain of causes that is told. */
const MAX_CAUSES = 8;

/** An error and its causes in one sentence, without stacks. */
export function describeError(error: unknown): string {
  const messages: string[] = [];
  let each = error;
  for (let depth = 0; each !== undefined && depth < MAX_CAUSES; depth++) {
    const message = each instanceof Error ? each.message : inspect(each);
    // Many errors repeat the message of their cause.
    if (!messages.some((known) => known.includes(message))) messages.push(message);
    each = each instanceof Error ? each.cause : undefined;
  }
  return messages.join(': ');
}

/** Whether an error can only come from a mistake in the program. */
export function isProgramFault(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}
