/** A command failed for a reason outside the program; the message tells what to do about it. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}
