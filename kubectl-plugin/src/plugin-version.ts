import manifest from '../package.json' with { type: 'json' };

export const PLUGIN_VERSION = manifest.version;
