import { describe, expect, it } from 'vitest';
import { GuestError, explainEnd } from './guest-error.ts';
import { guestOutput } from './guest-output.ts';

const MARK = '@guest-1';
const booted = guestOutput(MARK, () => undefined);
booted.push(Buffer.from(`${MARK} ready 2.0\n`));
const notBooted = guestOutput(MARK, () => undefined);
const end = { timedOut: false, stderr: '', durationMs: 61_000 };

describe('explainEnd', () => {
  it('tells a panic, our own trouble, a timeout, and QEMU that failed apart', () => {
    const panic = '[  1.0] Kernel panic - not syncing: Attempted to kill init!\n[ 1.1] more';
    expect(explainEnd(end, panic, booted)).toBe(
      'panicked while its command ran: Kernel panic - not syncing: Attempted to kill init!',
    );
    expect(explainEnd(end, 'x\nguest: cannot mount bpf at /sys/fs/bpf\n', notBooted)).toBe(
      'could not start: cannot mount bpf at /sys/fs/bpf',
    );
    expect(explainEnd({ ...end, timedOut: true }, '', notBooted)).toBe(
      'was ended after 61 s before it had booted',
    );
    expect(explainEnd({ ...end, stderr: 'no such disk\n' }, '', notBooted)).toBe(
      'QEMU ended before it had booted: no such disk',
    );
    expect(explainEnd(end, '', booted)).toBe('powered off while its command ran');
  });
});

describe('GuestError', () => {
  it('shows the kernel, the reason and the end of console and output', () => {
    const console = Array.from({ length: 100 }, (_, line) => `line ${line}`).join('\n');
    const { message } = new GuestError('panicked', { kernel: '6.1' }, console, 'out');
    expect(message).toContain('guest with kernel 6.1: panicked');
    expect(message).toContain('line 99');
    expect(message).not.toContain('line 39\n');
    expect(message).toContain('out');
  });
});
