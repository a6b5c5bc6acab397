import { randomBytes } from 'node:crypto';
import { appendFile, copyFile, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buildTestImages } from '../images/build.ts';
import { diskAsset } from './assets-disk.ts';
import { kernelAsset } from './assets-kernel.ts';
import { qemuAsset } from './assets-qemu.ts';
import { GuestError, explainEnd } from './guest-error.ts';
import { type PayloadItem, runArchive } from './guest-initramfs.ts';
import { guestOutput } from './guest-output.ts';
import { runGuestProcess } from './guest-process.ts';
import type { KernelSeries } from './kernel-series.ts';
import { runDirectory } from './run-directory.ts';
import { printProgress } from './progress.ts';
import { type GuestNetwork, qemuArguments } from './qemu-command.ts';

export type { KernelSeries } from './kernel-series.ts';

const DEFAULT_CPUS = 2;
const DEFAULT_MEMORY_MIB = 2_048;
const MARK_BYTES = 8;

export interface GuestOptions {
  kernel: KernelSeries;
  /** Virtual processors; 2, or 1 for an instruction-counted guest. */
  cpus?: number;
  memoryMib?: number;
  /** Added to the kernel's command line, such as `preempt=full`. */
  append?: string;
  /** Guest time is the number of executed instructions; one processor. */
  instructionCounted?: boolean;
  /** `hybrid` is systemd's layout of that name: controllers in version 1, version 2 at `/sys/fs/cgroup/unified`. */
  cgroups?: 'v2' | 'hybrid';
  /**
   * Start containerd, with the test images in its store, and wait until it answers; its process id is in
   * `/run/containerd.pid`, its log in `/var/log/containerd.log`.
   */
  containerd?: boolean;
  /** A network card; see test/node/host-network.ts and test/e2e/cluster-network.ts for what uses it. */
  network?: GuestNetwork;
  /** Another disk than that with the test images: what {@link diskAsset} has made. */
  disk?: string;
  /** The guest starts anew when it resets or panics; otherwise that is its end. What was on its disk stays. */
  mayReboot?: true;
  /** Ends the guest at once. */
  signal?: AbortSignal;
  payload: readonly PayloadItem[];
  /** Runs as root, found in PATH, in `/`. */
  command: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** For all of it, from power-on to power-off. */
  timeoutMs: number;
  /** Takes every line of the command's output as it comes. */
  onLine?: (line: string) => void;
}

export interface GuestResult {
  exitCode: number;
  /** The command's standard output and standard error, as they came. */
  output: string;
  /** What the kernel and the guest's first process wrote. */
  consoleLog: string;
  /** From power-on to power-off. */
  durationMs: number;
  /** From power-on until the command started, by the guest's clock. */
  readySeconds: number;
}

/**
 * Boots a guest on one of Debian's stock kernels, runs one command in it and powers it off. QEMU and every file of
 * the run are gone afterwards, also when this process is killed. Waits while the machine runs as many guests as it may.
 *
 * @throws GuestError when the guest does not boot, panics, takes longer than `timeoutMs`, or goes away without an
 *   exit code; its message holds the end of the console. A command that fails is no error: see `exitCode`.
 */
export async function runInGuest(options: GuestOptions): Promise<GuestResult> {
  const [qemu, kernel, disk] = [
    await qemuAsset(printProgress),
    await kernelAsset(options.kernel, printProgress),
    options.disk ??
      (await diskAsset(
        options.containerd === true ? await buildTestImages(printProgress) : [],
        printProgress,
      )),
  ];
  const mark = `@guest-${randomBytes(MARK_BYTES).toString('hex')}`;
  const instructionCounted = options.instructionCounted ?? false;
  const directory = await runDirectory();
  try {
    const initramfs = join(directory, 'initramfs');
    await copyFile(kernel.modulesArchive, initramfs);
    const run = {
      mark,
      cgroups: options.cgroups ?? 'v2',
      containerd: options.containerd ?? false,
      command: options.command,
      env: { TERM: 'dumb', NO_COLOR: '1', ...options.env },
      payload: options.payload,
    };
    await appendFile(initramfs, await runArchive(run));
    const consoleLog = join(directory, 'console.log');
    const machine = {
      kernelImage: kernel.image,
      initramfs,
      disk,
      consoleLog,
      cpus: options.cpus ?? (instructionCounted ? 1 : DEFAULT_CPUS),
      memoryMib: options.memoryMib ?? DEFAULT_MEMORY_MIB,
      append: options.append ?? '',
      instructionCounted,
      ...(options.mayReboot === true && { mayReboot: true }),
      ...(options.network !== undefined && { network: options.network }),
    };
    const output = guestOutput(mark, options.onLine ?? (() => undefined));
    const ended = await runGuestProcess({
      argv: [...qemu.command, ...qemuArguments(machine)],
      env: { ...qemu.env, TMPDIR: directory },
      directory,
      output,
      timeoutMs: options.timeoutMs,
      progress: printProgress,
      ...(options.signal !== undefined && { signal: options.signal }),
    });
    const text = (await readFile(consoleLog, 'utf8').catch(() => '')).replaceAll('\r', '');
    const { exitCode, readySeconds } = output;
    if (exitCode === undefined || readySeconds === undefined) {
      throw new GuestError(explainEnd(ended, text, output), options, text, output.text);
    }
    return { exitCode, output: output.text, consoleLog: text, durationMs: ended.durationMs, readySeconds };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
