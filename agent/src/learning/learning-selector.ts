import { type LabelSelector, labelSelectorOf } from '@runtime-enforcer/kube/label-selector';

/** A value of the flag that selects namespaces in no sensible way; the message says what to write. */
export class LearningSelectorError extends Error {
  override readonly name = 'LearningSelectorError';
}

const EXAMPLE = '{"matchLabels":{"learning":"on"}}';

/**
 * Reads `--learning-namespace-selector`: a label selector as JSON. Undefined for nothing but blanks, which turns
 * learning off. An empty selector would select everything, which nobody means by writing nothing into it.
 *
 * @throws LearningSelectorError
 */
export function parseLearningSelector(text: string): LabelSelector | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  if (!trimmed.startsWith('{')) {
    throw refused(`it must be a label selector as JSON, such as ${EXAMPLE}`);
  }
  let selector: LabelSelector;
  try {
    selector = labelSelectorOf(JSON.parse(trimmed) as unknown);
  } catch (cause) {
    throw refused(`${cause instanceof Error ? cause.message : String(cause)}; write it as ${EXAMPLE}`, cause);
  }
  if (selector.length === 0) {
    throw refused(
      'it selects everything because it is empty; leave the flag out to learn nothing, or select all namespaces by ' +
        '{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"Exists"}]}',
    );
  }
  return selector;
}

function refused(problem: string, cause?: unknown): LearningSelectorError {
  return new LearningSelectorError(`--learning-namespace-selector: ${problem}`, { cause });
}
