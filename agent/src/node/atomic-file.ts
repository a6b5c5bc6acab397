import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Replaces a file as a whole: a reader, and a machine that loses power, has the old content or the new one.
 * Rejects with the file system's error and leaves nothing behind.
 */
export async function writeFileAtomically(file: string, content: string): Promise<void> {
  const temporary = join(dirname(file), `.tmp-${randomUUID()}`);
  try {
    const handle = await open(temporary, 'wx', 0o644);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}
