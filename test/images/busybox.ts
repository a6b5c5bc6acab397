import { readFile } from 'node:fs/promises';

export const BUSYBOX = '/usr/bin/busybox';

/**
 * The machine's busybox, which needs no library.
 * @throws Error naming the package to install if it is missing
 */
export async function readBusybox(): Promise<Uint8Array> {
  try {
    return await readFile(BUSYBOX);
  } catch (cause) {
    throw new Error(`${BUSYBOX} is missing: apt-get install -y busybox-static`, { cause });
  }
}
