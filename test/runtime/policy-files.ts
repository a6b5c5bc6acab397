import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { API_VERSION, WORKLOAD_POLICY_KIND } from '@runtime-enforcer/api/keys';
import { stringify } from 'yaml';

/** A WorkloadPolicy as a test describes it. */
export interface PolicySpec {
  readonly name: string;
  /** `default` when left out. */
  readonly namespace?: string;
  readonly mode: 'monitor' | 'protect';
  readonly unlistedContainers?: 'allow' | 'deny';
  /** Allowed paths by container name. */
  readonly allowed: Readonly<Record<string, readonly string[]>>;
  readonly otherMountNamespaces?: 'deny' | 'unchecked';
}

/** The policy as the YAML document that a user would write. */
export function policyYaml(policy: PolicySpec): string {
  const { name, namespace = 'default', mode, unlistedContainers, allowed, otherMountNamespaces } = policy;
  const rulesByContainer = Object.fromEntries(
    Object.entries(allowed).map(([container, paths]) => [
      container,
      { executables: { allowed: paths, ...(otherMountNamespaces && { otherMountNamespaces }) } },
    ]),
  );
  return stringify({
    apiVersion: API_VERSION,
    kind: WORKLOAD_POLICY_KIND,
    metadata: { name, namespace },
    spec: { mode, ...(unlistedContainers && { unlistedContainers }), rulesByContainer },
  });
}

/** Writes a policy into an agent's directory as a whole: a reader sees the old file or the new one. */
export async function writePolicy(directory: string, policy: PolicySpec): Promise<void> {
  await writePolicyText(directory, policy.name, policyYaml(policy));
}

/** The same with any text as the file's content. */
export async function writePolicyText(directory: string, name: string, text: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const unfinished = join(directory, `.${name}.unfinished`);
  await writeFile(unfinished, text);
  await rename(unfinished, policyFile(directory, name));
}

export async function removePolicy(directory: string, name: string): Promise<void> {
  await rm(policyFile(directory, name));
}

function policyFile(directory: string, name: string): string {
  return join(directory, `${name}.yaml`);
}
