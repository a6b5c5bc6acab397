import { MAX_CONDITIONS, MAX_MESSAGE_CHARACTERS } from './limits.ts';
import { list, object, oneOf, text, wholeNumber, type Check } from './schema.ts';
import { timestamp } from './timestamp.ts';

/** A condition as Kubernetes' metav1.Condition has it. */
export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

export type ConditionStatus = 'True' | 'False' | 'Unknown';

const condition: Check<Condition> = object(
  {
    type: text({
      max: 316,
      pattern: /^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?$/,
      expected: 'a name such as Ready',
    }),
    status: oneOf(['True', 'False', 'Unknown']),
    reason: text({
      max: 256,
      pattern: /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/,
      expected: 'a word such as AllNodesReady',
    }),
    message: text({ max: MAX_MESSAGE_CHARACTERS }),
    lastTransitionTime: timestamp,
  },
  { observedGeneration: wholeNumber({ min: 0 }) },
);

export const conditions: Check<Condition[]> = list(condition, {
  max: MAX_CONDITIONS,
  key: ({ type }) => type,
});

/**
 * The conditions with one of them set. Its transition time is `now` only if its status is new.
 * @param now RFC 3339
 */
export function setCondition(
  current: readonly Condition[],
  wanted: Omit<Condition, 'lastTransitionTime'>,
  now: string,
): readonly Condition[] {
  const before = current.find(({ type }) => type === wanted.type);
  const lastTransitionTime = before?.status === wanted.status ? before.lastTransitionTime : now;
  const after: Condition = { ...wanted, lastTransitionTime };
  return before === undefined ? [...current, after] : current.map((each) => (each === before ? after : each));
}
