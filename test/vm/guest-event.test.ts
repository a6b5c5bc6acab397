import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type GuestEvent, decodeGuestLine, encodeGuestEvent } from './guest-event.ts';

const events: fc.Arbitrary<GuestEvent> = fc.oneof(
  fc.record({ event: fc.constant('running' as const), name: fc.string() }),
  fc.record({ event: fc.constant('passed' as const), name: fc.string(), durationMs: fc.nat() }),
  fc.record({
    event: fc.constant('failed' as const),
    name: fc.string(),
    durationMs: fc.nat(),
    message: fc.string(),
  }),
  fc.record({ event: fc.constant('skipped' as const), name: fc.string(), reason: fc.string() }),
  fc.constant({ event: 'end' as const }),
);

describe('guest events', () => {
  it('come back as they went, also behind text without a line end', () => {
    fc.assert(
      fc.property(events, fc.stringMatching(/^[ -~]*$/), (event, text) => {
        const line = encodeGuestEvent(event);
        expect(line.indexOf('\n')).toBe(line.length - 1);
        expect(decodeGuestLine(`${text}${line.slice(0, -1)}`)).toEqual({ text, event });
      }),
    );
  });

  it.each([
    '',
    'plain',
    '\u001e',
    '\u001e{"event":"passed"}',
    '\u001e{"event":"passed","name":1,"durationMs":1}',
    '\u001e{"event":"else","name":"x"}',
    '\u001enull',
    '\u001e[1]',
  ])('leaves %j as text', (line) => {
    expect(decodeGuestLine(line)).toEqual({ text: line, event: undefined });
  });
});
