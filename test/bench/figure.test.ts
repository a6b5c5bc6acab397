import { describe, expect, it } from 'vitest';
import { figureLine, judge, median, percentile } from './figure.ts';

describe('judge', () => {
  it.each([
    ['exec.allowed.3', 900, true, true],
    ['exec.allowed.3', 1_250, true, false],
    ['exec.allowed.3', 1_250.1, false, false],
    ['load.policies_per_second', 3_500, true, true],
    ['load.policies_per_second', 1_000, true, false],
    ['load.policies_per_second', 999.9, false, false],
    ['scale.growth_percent', 5, true, true],
    ['scale.growth_percent', Number.NaN, false, false],
  ])('%s of %d: must %s, goal %s', (figure, value, meetsMust, meetsGoal) => {
    expect(judge(figure, value)).toMatchObject({ meetsMust, meetsGoal });
  });

  it('asks nothing of a figure that is only printed', () => {
    expect(judge('exec.denied.3', 1e9)).toBeUndefined();
  });
});

describe('figures', () => {
  it('are one line of JSON with these fields', () => {
    const line = figureLine({ figure: 'a.b', value: 1.23456, unit: 'ms', kernel: '6.12.1', commit: 'abc+' });
    expect(line).toBe('{"figure":"a.b","value":1.235,"unit":"ms","kernel":"6.12.1","commit":"abc+"}');
  });

  it('takes percentiles by nearest rank', () => {
    const values = Array.from({ length: 1_000 }, (_, i) => 1_000 - i);
    expect(percentile(values, 99)).toBe(990);
    expect(percentile(values, 100)).toBe(1_000);
    expect(median(values)).toBe(500);
    expect(median([3, 1, 2])).toBe(2);
    expect(() => median([])).toThrow(RangeError);
  });
});
