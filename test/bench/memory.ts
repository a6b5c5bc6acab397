import type { Measured } from './figure.ts';
import { measureInGuest } from './guest-run.ts';

const TIMEOUT_MS = 600_000;

/** Kernel memory of the maps and programs, as the kernel's own accounting of a cgroup tells it. */
export async function benchMemory(report: (measured: Measured) => void): Promise<void> {
  await measureInGuest('memory.guest.ts', report, { timeoutMs: TIMEOUT_MS });
}
