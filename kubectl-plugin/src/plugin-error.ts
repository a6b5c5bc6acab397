/** Something that the person at the command line can act on. The message is safe to print and names its object. */
export class PluginError extends Error {
  /** What to do, where that does not follow from the message. */
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'PluginError';
    this.remedy = remedy;
  }
}

/** The command line cannot be understood. */
export class UsageError extends PluginError {
  constructor(message: string, remedy?: string) {
    super(message, remedy);
    this.name = 'UsageError';
  }
}
