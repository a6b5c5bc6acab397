import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { guestOutput } from './guest-output.ts';

const MARK = '@guest-0011223344556677';

describe('guestOutput', () => {
  it('gives the lines, the time of the start and the exit code, however the bytes are cut', () => {
    const text = `${MARK} ready 2.35\nfirst\nzwölf ✔\n\nlast without end\n${MARK} exit 7\n`;
    const bytes = Buffer.from(text);
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 0, max: bytes.length })), (cuts) => {
        const lines: string[] = [];
        const output = guestOutput(MARK, (line) => lines.push(line));
        let from = 0;
        for (const to of [...cuts.sort((left, right) => left - right), bytes.length]) {
          output.push(bytes.subarray(from, to));
          from = to;
        }
        expect(lines).toEqual(['first', 'zwölf ✔', '', 'last without end']);
        expect(output.readySeconds).toBe(2.35);
        expect(output.exitCode).toBe(7);
      }),
    );
  });

  it('drops the empty line that ends a command that ended its own last line', () => {
    const lines: string[] = [];
    const output = guestOutput(MARK, (line) => lines.push(line));
    output.push(Buffer.from(`\nout\n\n\n${MARK} exit 0\n`));
    expect(lines).toEqual(['', 'out', '']);
    expect(output.text).toBe('\nout\n\n');
    expect(output.exitCode).toBe(0);
  });

  it('knows no exit code before the mark is whole, and takes no other mark for ours', () => {
    const output = guestOutput(MARK, () => undefined);
    output.push(Buffer.from(`@guest-ffff exit 0\n ${MARK} exit 1\n${MARK} exit 5`));
    expect(output.exitCode).toBeUndefined();
    expect(output.readySeconds).toBeUndefined();
    output.push(Buffer.from('\n'));
    expect(output.exitCode).toBe(5);
  });

  it('survives bytes that are no UTF-8 and a line without end', () => {
    const lines: string[] = [];
    const output = guestOutput(MARK, (line) => lines.push(line));
    output.push(Buffer.from([0xff, 0xfe, 0x0a]));
    output.push(Buffer.alloc(1_000_001, 'x'));
    expect(lines).toEqual(['\ufffd\ufffd', 'x'.repeat(1_000_001)]);
  });
});
