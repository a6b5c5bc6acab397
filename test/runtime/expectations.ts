import assert from 'node:assert/strict';
import type { Cri } from './cri.ts';
import { execIn, type Pod } from './pod.ts';

/** Both runtimes put the errno's text into their message. */
export const DENIED = /operation not permitted/i;

/** Runs a program in the pod's container and fails if it was not started or did not exit with 0. Returns its output. */
export async function mustRun(
  cri: Cri,
  pod: Pod,
  container: string,
  argv: readonly string[],
): Promise<string> {
  const execution = await execIn(cri, pod, container, argv);
  if (!execution.started) assert.fail(`${argv.join(' ')} was not started: ${execution.reason}`);
  assert.equal(execution.exitCode, 0, `${argv.join(' ')}: ${execution.stderr}${execution.stdout}`);
  return execution.stdout;
}

/** Fails unless the kernel denied the program with EPERM when the runtime started it in the container. */
export async function mustBeDenied(
  cri: Cri,
  pod: Pod,
  container: string,
  argv: readonly string[],
): Promise<void> {
  const execution = await execIn(cri, pod, container, argv);
  if (execution.started) assert.fail(`${argv.join(' ')} was started: ${JSON.stringify(execution)}`);
  assert.match(execution.reason, DENIED);
}
