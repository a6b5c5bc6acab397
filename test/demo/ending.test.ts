import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ENDING = pathToFileURL(join(import.meta.dirname, 'ending.ts')).href;
/** Far less than the child that is left running would take. */
const PROMPTLY_MS = 10_000;

/** A play that leaves a child with open pipes and a timer behind, as a demo that fails half-way leaves its agent. */
async function played(end: string): Promise<{ code: number | null; output: string; tookMs: number }> {
  const script = `
    import { spawn } from 'node:child_process';
    import { playToTheEnd } from '${ENDING}';
    await playToTheEnd(async () => {
      const child = spawn('sleep', ['60'], { stdio: 'pipe' });
      setInterval(() => undefined, 1_000);
      process.stdout.write(\`child \${child.pid}\\n\`);
      await Promise.resolve();
      ${end}
    });`;
  const start = performance.now();
  const player = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  player.stdout.on('data', (data: Buffer) => (output += data.toString()));
  const [code] = (await once(player, 'close')) as [number | null];
  const tookMs = performance.now() - start;
  process.kill(Number(/child (\d+)/.exec(output)?.[1]), 'SIGKILL');
  return { code, output, tookMs };
}

describe('the demo', () => {
  it('ends at once with exit code 1 and the reason when a step fails, whatever still runs', async () => {
    const { code, output, tookMs } = await played("throw new Error('expected, and not so: it ran');");
    expect(code).toBe(1);
    expect(output).toMatch(/\nThis did not go as told: expected, and not so: it ran\n$/);
    expect(tookMs).toBeLessThan(PROMPTLY_MS);
  });

  it('ends at once with exit code 0 when every step went as told', async () => {
    const { code, output, tookMs } = await played('');
    expect([code, output.includes('did not go')]).toEqual([0, false]);
    expect(tookMs).toBeLessThan(PROMPTLY_MS);
  });
});
