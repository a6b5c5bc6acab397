import manifest from '../package.json' with { type: 'json' };

/** Version of the agent, as released. */
export const AGENT_VERSION: string = manifest.version;
