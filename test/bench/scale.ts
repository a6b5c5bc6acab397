import type { Measured } from './figure.ts';
import { measureInGuest } from './guest-run.ts';

const TIMEOUT_MS = 900_000;

/** The same check with one policy and with 10,000 in the kernel. */
export async function benchScale(report: (measured: Measured) => void): Promise<void> {
  await measureInGuest('scale.guest.ts', report, { instructionCounted: true, timeoutMs: TIMEOUT_MS });
}
