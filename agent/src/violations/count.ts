/** Whether what was read back can be a number of occurrences, bytes or the like. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
