import { parseExecutablePath, type ExecutablePath } from '@runtime-enforcer/api/executable-path';
import { parseWorkloadPolicy, type WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { KernelMaps } from '../kernel/maps.ts';
import { decodePolicyWord, type PolicyWord } from './policy-words.ts';

/** For tests: a policy `shop/<name>` of these containers' paths. */
export function examplePolicy(
  name: string,
  containers: Readonly<Record<string, readonly string[]>>,
  change: Readonly<Record<string, unknown>> = {},
): WorkloadPolicy {
  const rulesByContainer = Object.fromEntries(
    Object.entries(containers).map(([container, allowed]) => [container, { executables: { allowed } }]),
  );
  const parsed = parseWorkloadPolicy({
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { name, namespace: 'shop' },
    spec: { mode: 'protect', rulesByContainer, ...change },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.value;
}

export function examplePath(text: string): ExecutablePath {
  const parsed = parseExecutablePath(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.value;
}

/** What the kernel program would find: the word of a policy id, undefined for none. */
export function wordOf(maps: KernelMaps, id: number): PolicyWord | undefined {
  const key = Buffer.alloc(4);
  key.writeUInt32LE(id);
  const value = maps.policies.lookup(key);
  const word = value === undefined ? 0n : Buffer.from(value).readBigUInt64LE();
  return word === 0n ? undefined : decodePolicyWord(word);
}

/** The kernel program's answer, computed as bpf/decide.h does: the smallest table that holds the key. */
export function isListed(maps: KernelMaps, list: number, path: Uint8Array): boolean {
  const table = maps.allowed.find(({ keyBytes }) => path.length + 4 <= keyBytes);
  if (table === undefined) return false;
  const key = Buffer.alloc(table.keyBytes);
  key.writeUInt32LE(list);
  key.set(path, 4);
  return table.map.lookup(key) !== undefined;
}

/** All entries of all tables. */
export async function entryCount(maps: KernelMaps): Promise<number> {
  const contents = await Promise.all(maps.allowed.map(({ map }) => map.entries()));
  return contents.reduce((sum, { count }) => sum + count, 0);
}
