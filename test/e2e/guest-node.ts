import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { issueCertificate, type CertifiedKey } from '@runtime-enforcer/certs/authority';
import { kubernetesBinary } from '../cluster/kubernetes-binary.ts';
import { eventually } from '../runtime/eventually.ts';
import { bundleForGuest } from '../vm/guest-bundle.ts';
import { runInGuest } from '../vm/guest.ts';
import { printProgress } from '../vm/progress.ts';
import { NODE_ADDRESS, TAP } from './cluster-network.ts';
import { CONTROL_PORT, NODE_NAME, nodeFiles, SUPERVISOR } from './node-files.ts';
import type { NodeCommandResult } from './node-supervisor.ts';

const MEMORY_MIB = 4_096;
const LIFE_LIMIT_MS = 3_600_000;
const RELEASE_LIMIT_MS = 5_000;
const COMMAND_LIMIT_MS = 130_000;
const BOOT_ID = '/proc/sys/kernel/random/boot_id';
const QUESTION_LIMIT_MS = 5_000;
const REBOOT_LIMIT_MS = 120_000;
const POWER_OFF_LIMIT_MS = 15_000;
const VALID_FOR_MS = 86_400_000;
const CONTROL = `http://${NODE_ADDRESS}:${CONTROL_PORT}`;

/** A guest that is a node of the cluster: containerd, kubelet, and nothing of the product but its images. */
export interface GuestNode {
  /** Runs a program on the node as root. */
  run(...argv: readonly string[]): Promise<NodeCommandResult>;
  /** Runs it and gives what it printed. @throws Error with what it said when it fails */
  read(...argv: readonly string[]): Promise<string>;
  /** @throws Error with its console when the guest is gone */
  assertRunning(): void;
  /** What the guest's supervisor and kernel said so far. */
  readonly output: readonly string[];
  /** Resets it as a person would who has not the patience to stop its pods, and waits until it answers again. */
  reboot(): Promise<void>;
  /** Powers it off, or ends it when it does not hear. */
  stop(): Promise<void>;
}

export interface GuestNodeOptions {
  /** See assets-disk.ts. */
  readonly disk: string;
  /** A directory with another containerd than Debian's. */
  readonly containerd?: string;
  /** Signs the certificate that kubelet shows, and those that it believes. */
  readonly kubeletAuthority: CertifiedKey;
  /** How kubelet reaches the API server, as JSON. */
  readonly kubeconfig: string;
}

/** Starts the guest, and leaves it to the caller to wait for the node to be ready. */
export async function startGuestNode(options: GuestNodeOptions): Promise<GuestNode> {
  const kubelet = await kubernetesBinary('kubelet', printProgress);
  const supervisor = await bundleForGuest(
    `import ${JSON.stringify(join(import.meta.dirname, 'node-supervisor.ts'))};\n`,
  );
  const serving = await issueCertificate(options.kubeletAuthority, {
    ...{ commonName: `system:node:${NODE_NAME}`, dnsNames: [NODE_NAME], ipAddresses: [NODE_ADDRESS] },
    ...{ usages: ['server'], now: new Date(), validForMs: VALID_FOR_MS },
  });
  const files = nodeFiles(kubelet, options.containerd, supervisor, {
    authority: options.kubeletAuthority.certificate,
    ...serving,
    kubeconfig: options.kubeconfig,
  });
  const output: string[] = [];
  const kill = new AbortController();
  let end: string | undefined;
  const ended = runInGuest({
    ...{ kernel: '6.12', mayReboot: true, disk: options.disk, memoryMib: MEMORY_MIB },
    network: { tap: TAP },
    payload: files,
    command: ['node', SUPERVISOR],
    timeoutMs: LIFE_LIMIT_MS,
    onLine: (line) => void output.push(line),
    signal: kill.signal,
  }).then(
    ({ exitCode, consoleLog }) => (end = `with code ${exitCode}\n${consoleLog}`),
    (error: unknown) => (end = `: ${String(error)}`),
  );
  const ask = async (argv: readonly string[], limitMs: number): Promise<NodeCommandResult> => {
    const response = await fetch(`${CONTROL}/run`, {
      method: 'POST',
      body: JSON.stringify(argv),
      signal: AbortSignal.timeout(limitMs),
    });
    return (await response.json()) as NodeCommandResult;
  };
  const run = async (...argv: readonly string[]): Promise<NodeCommandResult> =>
    await ask(argv, COMMAND_LIMIT_MS);
  const bootId = async (): Promise<string> => (await ask(['cat', BOOT_ID], QUESTION_LIMIT_MS)).stdout;
  return {
    run,
    async reboot() {
      const before = await bootId();
      // What was written is on the disk; no process is asked. The answer comes before the end.
      await run('sh', '-c', '(sync; sleep 1; echo b > /proc/sysrq-trigger) > /dev/null 2>&1 &');
      await eventually(
        'the node answers after its reboot',
        async () => {
          const now = await bootId();
          return now !== '' && now !== before ? true : undefined;
        },
        REBOOT_LIMIT_MS,
      );
    },
    async read(...argv) {
      const { code, stdout, stderr } = await run(...argv);
      if (code === 0) return stdout;
      throw new Error(`on the node, ${argv.join(' ')} ended with code ${code}: ${stderr}`);
    },
    assertRunning() {
      if (end !== undefined) throw new Error(`the node ended ${end}`);
    },
    output,
    async stop() {
      const budget = AbortSignal.timeout(RELEASE_LIMIT_MS);
      await fetch(`${CONTROL}/release`, { method: 'POST', signal: budget }).catch(() => undefined);
      const forget = new AbortController();
      await Promise.race([
        ended,
        sleep(POWER_OFF_LIMIT_MS, undefined, { signal: forget.signal }).catch(() => undefined),
      ]);
      forget.abort();
      kill.abort();
      await ended;
    },
  };
}
