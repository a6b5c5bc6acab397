import manifest from '../package.json' with { type: 'json' };

/** Version of the controller, as released. */
export const CONTROLLER_VERSION: string = manifest.version;
