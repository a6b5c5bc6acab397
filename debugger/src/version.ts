import manifest from '../package.json' with { type: 'json' };

/** Version of the debugger, as released. */
export const DEBUGGER_VERSION: string = manifest.version;
