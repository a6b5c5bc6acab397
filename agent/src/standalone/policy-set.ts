import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { policyKey } from '../policies/policy-key.ts';

/** What became of a file. A file that is not mentioned, or is broken, keeps its policies. */
export interface FilePolicies {
  readonly file: string;
  /** Empty: the file is gone. */
  readonly policies: readonly WorkloadPolicy[];
}

/** What follows from changed files. */
export interface PolicySetChange {
  /** New or changed, each with the file it stands in. */
  readonly apply: readonly { readonly policy: WorkloadPolicy; readonly file: string }[];
  /** `namespace/name` of policies that stand in no file any more. */
  readonly remove: readonly string[];
  /** A policy of `file` is not taken because `owner` holds one of the same name. */
  readonly conflicts: readonly { readonly policy: string; readonly file: string; readonly owner: string }[];
}

/** All policies of a directory, each from one file: while several hold one, from the one that was read first. */
export interface PolicySet {
  update(changes: readonly FilePolicies[]): PolicySetChange;
  policy(namespacedName: string): WorkloadPolicy | undefined;
  policies(): Iterable<WorkloadPolicy>;
}

export function createPolicySet(): PolicySet {
  /** By policy and then by file, in the order of reading: the first entry is the one in force. */
  const holders = new Map<string, Map<string, WorkloadPolicy>>();
  const keysOfFile = new Map<string, ReadonlySet<string>>();

  const inForce = (key: string): { policy: WorkloadPolicy; file: string } | undefined => {
    const first = holders.get(key)?.entries().next().value;
    return first && { file: first[0], policy: first[1] };
  };

  return {
    update(changes) {
      const before = new Map<string, WorkloadPolicy | undefined>();
      const remember = (key: string): void => {
        if (!before.has(key)) before.set(key, inForce(key)?.policy);
      };
      // What goes makes room before anything comes, so that a policy can move from one file to another.
      for (const { file, policies } of changes) {
        const kept = new Set(policies.map(policyKey));
        for (const key of keysOfFile.get(file) ?? []) {
          if (kept.has(key)) continue;
          remember(key);
          const files = holders.get(key);
          files?.delete(file);
          if (files?.size === 0) holders.delete(key);
        }
        if (kept.size === 0) keysOfFile.delete(file);
        else keysOfFile.set(file, kept);
      }
      const conflicts: PolicySetChange['conflicts'][number][] = [];
      for (const { file, policies } of changes) {
        for (const policy of policies) {
          const key = policyKey(policy);
          remember(key);
          const files = holders.get(key) ?? new Map<string, WorkloadPolicy>();
          holders.set(key, files.set(file, policy));
          const owner = inForce(key)?.file;
          if (owner !== undefined && owner !== file) conflicts.push({ policy: key, file, owner });
        }
      }
      const apply: PolicySetChange['apply'][number][] = [];
      const remove: string[] = [];
      for (const [key, old] of before) {
        const now = inForce(key);
        if (now === undefined) {
          if (old !== undefined) remove.push(key);
        } else if (now.policy !== old) {
          apply.push(now);
        }
      }
      return { apply, remove, conflicts };
    },
    policy: (key) => inForce(key)?.policy,
    *policies() {
      for (const key of holders.keys()) {
        const now = inForce(key);
        if (now !== undefined) yield now.policy;
      }
    },
  };
}
