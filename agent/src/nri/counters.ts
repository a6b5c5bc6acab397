/** The calls that are counted by name; any other is counted as `other`. */
export const NRI_METHODS = [
  'Configure',
  'Synchronize',
  'StateChange',
  'StartContainer',
  'RemoveContainer',
  'Shutdown',
] as const;
export type NriMethod = (typeof NRI_METHODS)[number] | 'other';

/**
 * What is counted: `connects` and `disconnects` of the socket; `requests`, error answers (`errors`)
 * and answers given because the budget was used up (`deadline_exceeded`, which for StartContainer is
 * an error too), each with its method; `malformed_frames` for input that could not be understood.
 */
export type NriCounter =
  'connects' | 'disconnects' | 'requests' | 'errors' | 'deadline_exceeded' | 'malformed_frames';

/** Where the plugin counts; `method` is given with the three counters that have one. Must not throw. */
export interface NriCounters {
  increment(counter: NriCounter, method?: NriMethod): void;
  /** Told how long the runtime waited for each answer. */
  answered?(method: NriMethod, seconds: number): void;
}

/** A method name as a label of bounded cardinality. */
export function nriMethodLabel(method: string): NriMethod {
  return NRI_METHODS.find((known) => known === method) ?? 'other';
}
