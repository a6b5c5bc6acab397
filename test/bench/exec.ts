import type { Measured } from './figure.ts';
import { measureInGuest } from './guest-run.ts';

const TIMEOUT_MS = 600_000;

/** Instructions of everything attached per exec: guest time is instructions there, and the kernel's statistics add it up. */
export async function benchExec(report: (measured: Measured) => void): Promise<void> {
  await measureInGuest('exec.guest.ts', report, { instructionCounted: true, timeoutMs: TIMEOUT_MS });
}
