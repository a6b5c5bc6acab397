import { quote } from '@runtime-enforcer/api/field-error';
import { UsageError } from './plugin-error.ts';

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(?:\d{1,9}(?:\.\d{1,3})?(?:ms|s|m|h|d))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;
const SHOWN_UNITS = ['d', 'h', 'm', 's'] as const;

/**
 * Reads a length of time as Go writes it, such as `90s`, `1h30m` or `2d`, and a bare number as seconds.
 *
 * @param flag where it was given, for the error
 * @returns milliseconds
 * @throws UsageError
 */
export function parseDuration(text: string, flag: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  if (!DURATION.test(text)) {
    throw new UsageError(
      `${flag}: ${quote(text)} is not a length of time; expected one such as 90s, 5m or 1h30m`,
    );
  }
  let sum = 0;
  for (const [, number = '', unit = ''] of text.matchAll(PART)) sum += Number(number) * (UNIT_MS[unit] ?? 0);
  return sum;
}

/** A length of time as kubectl shows an age: the two largest units while the number is small, otherwise one. */
export function formatAge(milliseconds: number): string {
  const ms = Math.max(0, milliseconds);
  for (const [index, unit] of SHOWN_UNITS.entries()) {
    const size = UNIT_MS[unit] ?? 1;
    const count = Math.floor(ms / size);
    if (count === 0) continue;
    const next = SHOWN_UNITS[index + 1];
    const rest = next === undefined ? 0 : Math.floor((ms % size) / (UNIT_MS[next] ?? 1));
    return next !== undefined && count < 10 && rest > 0 ? `${count}${unit}${rest}${next}` : `${count}${unit}`;
  }
  return '0s';
}
