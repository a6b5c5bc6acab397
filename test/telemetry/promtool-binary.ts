import { join } from 'node:path';
import { debianRoot } from '../vm/debian-root.ts';
import type { Progress } from '../vm/progress.ts';

const PROMTOOL = { kind: 'promtool', title: 'promtool', suite: 'trixie', packages: ['promtool'] };

/** Prometheus' checking tool as Debian packages it, unpacked into the cache. @returns the program's path */
export async function promtoolBinary(progress: Progress): Promise<string> {
  return join(await debianRoot(PROMTOOL, progress), 'usr/bin/promtool');
}
