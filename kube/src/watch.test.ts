import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linesOf } from './watch.ts';

async function lines(chunks: readonly Buffer[]): Promise<string[]> {
  const found: string[] = [];
  const body = (function* () {
    yield* chunks;
  })() as unknown as AsyncIterable<Buffer>;
  for await (const line of linesOf(body, '/x')) found.push(line);
  return found;
}

describe('linesOf', () => {
  it('gives the same lines however the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' '))),
        fc.array(fc.nat({ max: 40 })),
        async (texts, cuts) => {
          const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(''));
          const points = [
            0,
            ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b),
            bytes.length,
          ];
          const chunks = points.slice(1).map((point, index) => bytes.subarray(points[index], point));
          expect(await lines(chunks)).toEqual(texts);
        },
      ),
    );
  });

  it('a line that is cut off is none', async () => {
    expect(await lines([Buffer.from('a\nb')])).toEqual(['a']);
  });

  it('refuses a line without end', async () => {
    const chunk = Buffer.alloc(8 * 1024 * 1024, 'x');
    await expect(lines([chunk, chunk, chunk])).rejects.toThrow('an event exceeds');
  });
});
