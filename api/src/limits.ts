/** Bounds of what tenants may put into the resources. The CRDs state the same numbers; a test compares them. */

export const MAX_CONTAINERS = 64;
export const MAX_PATHS_PER_CONTAINER = 1000;
/** Paths that learning collects in one proposal, all containers together. */
export const MAX_LEARNED_PATHS = 100;
/**
 * Their texts together, in UTF-8 bytes. The object holds each up to four times: as a rule, as an observation, and as the
 * owner of either in `managedFields`.
 */
export const MAX_LEARNED_BYTES = 16 * 1024;
/** Pods, and nodes, that one observation of a proposal remembers by name. */
export const MAX_OBSERVED_NAMES = 10;
/** Nodes that a policy's status names; the last place says that there were more. */
export const MAX_STATUS_NODES = 20;
export const MAX_VIOLATION_RECORDS = 100;
/** Their texts together, as JSON in UTF-8 bytes, in each of a status' two lists: an object has room for 1.5 MiB. */
export const MAX_VIOLATION_RECORD_BYTES = 192 * 1024;
/** Agents whose place in their journal a status remembers. */
export const MAX_MERGE_POSITIONS = 5_000;
export const MAX_INCARNATION_CHARACTERS = 128;
export const MAX_CONDITIONS = 16;
/** Length of a message in a status, in characters. */
export const MAX_MESSAGE_CHARACTERS = 1024;
