import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { policyResource, workloadLists } from './workload.ts';

/** Writes so many of the workload's policies into a directory, each in a file of its own as a user would. */
export async function writePolicyFiles(directory: string, count: number): Promise<void> {
  await mkdir(directory, { recursive: true });
  let number = 0;
  for (const allowed of workloadLists(count)) {
    const name = `policy-${number++}`;
    await writeFile(join(directory, `${name}.yaml`), stringify(policyResource(name, allowed, 'protect')));
  }
}
