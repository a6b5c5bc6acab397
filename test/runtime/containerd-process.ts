import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { openCri } from './cri.ts';
import { eventually } from './eventually.ts';

const PID_FILE = '/run/containerd.pid';
const LOG_FILE = '/var/log/containerd.log';
const RESTART_BUDGET_MS = 60_000;

/** Kills the guest's containerd, as a crash would, starts another, and waits until it answers. Containers run on. */
export async function restartContainerd(): Promise<void> {
  const pid = Number(await readFile(PID_FILE, 'utf8'));
  process.kill(pid, 'SIGKILL');
  await eventually('containerd is gone', async () => await hasEnded(pid));
  const log = openSync(LOG_FILE, 'a');
  const child = spawn('/usr/bin/containerd', ['--config', '/run/guest/containerd.toml'], {
    stdio: ['ignore', log, log],
    detached: true,
  });
  child.unref();
  await writeFile(PID_FILE, `${child.pid ?? 0}\n`);
  const cri = openCri();
  try {
    // It answers before its CRI service is ready.
    await eventually(
      'containerd is back',
      async () => await cri.call('ListPodSandbox', {}),
      RESTART_BUDGET_MS,
    );
  } finally {
    cri.close();
  }
}

/** A process that nobody has waited for yet is as good as gone. */
async function hasEnded(pid: number): Promise<true | undefined> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z');
  return status.includes(') Z') ? true : undefined;
}
