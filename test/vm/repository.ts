import { resolve } from 'node:path';

/** The root of this checkout. */
export const REPOSITORY = resolve(import.meta.dirname, '../..');

/** The Node that the product is developed, tested and shipped with; guests run the very same file. */
export const NODE_BINARY = resolve(REPOSITORY, 'node_modules/node/bin/node');
