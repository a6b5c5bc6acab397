/** The command line cannot be understood; the message says what was expected. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
