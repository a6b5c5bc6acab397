import { matchesLabels } from '@runtime-enforcer/kube/label-selector';
import { describe, expect, it } from 'vitest';
import { LearningSelectorError, parseLearningSelector } from './learning-selector.ts';

describe('parseLearningSelector', () => {
  it.each(['', ' ', '\t\n'])('turns learning off for %j', (text) => {
    expect(parseLearningSelector(text)).toBeUndefined();
  });

  it('reads labels and expressions', () => {
    const text =
      ' {"matchLabels":{"team":"shop"},"matchExpressions":[{"key":"env","operator":"NotIn","values":["prod"]}]}';
    const selector = parseLearningSelector(text) ?? [];
    expect(matchesLabels(selector, { team: 'shop', env: 'test' })).toBe(true);
    expect(matchesLabels(selector, { team: 'shop', env: 'prod' })).toBe(false);
    expect(matchesLabels(selector, {})).toBe(false);
  });

  it.each([
    ['{}', 'empty'],
    ['{"matchLabels":{}}', 'empty'],
    ['{"matchExpressions":[]}', 'empty'],
    ['{"matchLabel":{"a":"b"}}', 'empty'],
    ['team=shop', 'as JSON'],
    ['[]', 'as JSON'],
    ['null', 'as JSON'],
    ['"{}"', 'as JSON'],
    ['{', 'JSON'],
    ['{"matchLabels":{"a b":"c"}}', 'not the key of a label'],
    ['{"matchLabels":[]}', 'matchLabels must be an object'],
    ['{"matchExpressions":[{"key":"a","operator":"Like"}]}', 'the operator must be'],
    ['{"matchExpressions":[{"key":"a","operator":"In"}]}', 'needs a list of values'],
  ])('refuses %j and names the flag', (text, problem) => {
    expect(() => parseLearningSelector(text)).toThrow(LearningSelectorError);
    expect(() => parseLearningSelector(text)).toThrow(problem);
    expect(() => parseLearningSelector(text)).toThrow('--learning-namespace-selector');
  });
});
