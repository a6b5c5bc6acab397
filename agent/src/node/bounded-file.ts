import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { MAX_YAML_BYTES } from '@runtime-enforcer/api/yaml-document';

/** The bytes of a file, or why they could not be had. */
export type BoundedRead =
  { readonly ok: true; readonly content: Uint8Array } | { readonly ok: false; readonly problem: string };

/**
 * Reads a regular file of at most `maxBytes`, whatever stands under the name: a pipe or a device is refused before
 * it can block, a file that grows is cut off with an error. Never rejects.
 */
export async function readBoundedFile(file: string, maxBytes = MAX_YAML_BYTES): Promise<BoundedRead> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stats = await handle.stat();
    if (!stats.isFile()) return { ok: false, problem: 'it is not a regular file' };
    const content = await readUpTo(handle, stats.size, maxBytes);
    if (content === undefined) return { ok: false, problem: `it has more than ${maxBytes} bytes; split it` };
    return { ok: true, content };
  } catch (error) {
    return { ok: false, problem: problemOf(error) };
  } finally {
    await handle?.close();
  }
}

async function readUpTo(handle: FileHandle, size: number, maxBytes: number): Promise<Uint8Array | undefined> {
  if (size > maxBytes) return undefined;
  let buffer = new Uint8Array(Math.min(size, maxBytes) + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
    length += bytesRead;
    if (length > maxBytes) return undefined;
    if (bytesRead === 0) return buffer.subarray(0, length);
    if (length === buffer.length) {
      const larger = new Uint8Array(Math.min(2 * buffer.length, maxBytes) + 1);
      larger.set(buffer);
      buffer = larger;
    }
  }
}

/** A file system error in words. */
export function problemOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'ENOENT':
      return 'it does not exist';
    case 'EACCES':
    case 'EPERM':
      return 'permission is denied';
    case 'ENOTDIR':
      return 'a part of its path is not a directory';
    case 'EISDIR':
      return 'it is a directory';
    case 'ELOOP':
      return 'its symbolic links lead in a circle';
    case 'ENOSPC':
      return 'the disk is full';
    case 'EROFS':
      return 'the file system is read-only';
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
