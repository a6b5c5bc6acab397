import { DEFAULT_OTHER_MOUNT_NAMESPACES, type RulesByContainer } from './container-rules.ts';
import type { ExecutablePath } from './executable-path.ts';
import { MAX_CONTAINERS, MAX_PATHS_PER_CONTAINER } from './limits.ts';

/** What is different between two sets of rules, container by container, in the order of their names. */
export interface RulesDifference {
  readonly containerName: string;
  /** `added`, `removed`: only one side names the container. */
  readonly container: 'added' | 'removed' | 'both';
  readonly added: readonly ExecutablePath[];
  readonly removed: readonly ExecutablePath[];
  readonly common: number;
  /** The new value, where it is another one. */
  readonly otherMountNamespaces?: string;
}

/** Containers whose rules are equal are left out. */
export function compareRules(from: RulesByContainer, to: RulesByContainer): readonly RulesDifference[] {
  const names = [...new Set([...from.keys(), ...to.keys()])].toSorted();
  return names.flatMap((containerName) => {
    const before = from.get(containerName)?.executables;
    const after = to.get(containerName)?.executables;
    const known = new Set(before?.allowed);
    const wanted = new Set(after?.allowed);
    const added = [...wanted].filter((path) => !known.has(path)).toSorted();
    const removed = [...known].filter((path) => !wanted.has(path)).toSorted();
    const container = before === undefined ? 'added' : after === undefined ? 'removed' : 'both';
    const isOther =
      container === 'both' && before?.otherMountNamespaces !== after?.otherMountNamespaces
        ? after?.otherMountNamespaces
        : undefined;
    if (container === 'both' && added.length + removed.length === 0 && isOther === undefined) return [];
    return [
      {
        containerName,
        container,
        added,
        removed,
        common: known.size - removed.length,
        ...(isOther !== undefined && { otherMountNamespaces: isOther }),
      } as const,
    ];
  });
}

/** Why rules cannot be changed as asked. */
export type RulesRefusal = 'noRules' | 'unknownContainer' | 'tooManyContainers' | 'tooManyPaths';

export type ChangedRules =
  | { readonly ok: true; readonly rules: RulesByContainer; readonly changed: readonly ExecutablePath[] }
  | { readonly ok: false; readonly refusal: RulesRefusal };

/**
 * Rules with paths appended to a container's list, those that are on it already left where they are.
 * @param missing what to do about a container that the rules do not name
 */
export function allowPaths(
  rules: RulesByContainer,
  containerName: string,
  paths: Iterable<ExecutablePath>,
  missing: 'refuse' | 'add' = 'refuse',
): ChangedRules {
  const known = rules.get(containerName);
  if (known === undefined && missing === 'refuse') {
    return { ok: false, refusal: rules.size === 0 ? 'noRules' : 'unknownContainer' };
  }
  if (known === undefined && rules.size >= MAX_CONTAINERS) return { ok: false, refusal: 'tooManyContainers' };
  const { allowed = [], otherMountNamespaces = DEFAULT_OTHER_MOUNT_NAMESPACES } = known?.executables ?? {};
  const before = new Set(allowed);
  const changed = [...new Set(paths)].filter((path) => !before.has(path));
  if (allowed.length + changed.length > MAX_PATHS_PER_CONTAINER)
    return { ok: false, refusal: 'tooManyPaths' };
  const executables = { allowed: [...allowed, ...changed], otherMountNamespaces };
  return { ok: true, rules: new Map([...rules, [containerName, { executables }]]), changed };
}

/** Rules with paths taken from a container's list; those that are not on it are passed over. */
export function denyPaths(
  rules: RulesByContainer,
  containerName: string,
  paths: Iterable<ExecutablePath>,
): ChangedRules {
  const known = rules.get(containerName);
  if (known === undefined) return { ok: false, refusal: rules.size === 0 ? 'noRules' : 'unknownContainer' };
  const unwanted = new Set(paths);
  const { allowed, otherMountNamespaces } = known.executables;
  const changed = allowed.filter((path) => unwanted.has(path));
  const executables = { allowed: allowed.filter((path) => !unwanted.has(path)), otherMountNamespaces };
  return { ok: true, rules: new Map([...rules, [containerName, { executables }]]), changed };
}
