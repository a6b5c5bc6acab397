import { parseExecutablePath, type ExecutablePath } from './executable-path.ts';
import { dnsLabel } from './kubernetes-name.ts';
import { MAX_CONTAINERS, MAX_PATHS_PER_CONTAINER } from './limits.ts';
import { list, mapOf, mapped, object, oneOf, report, type Check } from './schema.ts';

/** What a container may start. Absent fields have their defaults. */
export interface ContainerRules {
  readonly executables: ExecutableRules;
}

export interface ExecutableRules {
  /** Exact paths; an empty list allows nothing. */
  readonly allowed: readonly ExecutablePath[];
  readonly otherMountNamespaces: OtherMountNamespaces;
}

/**
 * What happens to an exec in a mount namespace that is not the container's own, where any file can be made to
 * appear under any path: `deny` makes it a violation whatever its path, `unchecked` leaves it alone.
 */
export type OtherMountNamespaces = 'deny' | 'unchecked';

export const OTHER_MOUNT_NAMESPACES = [
  'deny',
  'unchecked',
] as const satisfies readonly OtherMountNamespaces[];
export const DEFAULT_OTHER_MOUNT_NAMESPACES: OtherMountNamespaces = 'deny';

/** By container name: init, sidecar, main and ephemeral containers alike. */
export type RulesByContainer = ReadonlyMap<string, ContainerRules>;

export const executablePath: Check<ExecutablePath> = (input, at, findings) => {
  if (typeof input !== 'string') {
    return report(findings, at, { message: 'the path is not text', expected: 'a path in quotation marks' });
  }
  const parsed = parseExecutablePath(input, at);
  if (parsed.ok) return parsed.value;
  findings.errors.push(...parsed.errors);
  return null;
};

const executableRules: Check<ExecutableRules> = mapped(
  object(
    {},
    {
      allowed: list(executablePath, { max: MAX_PATHS_PER_CONTAINER, key: (_, text) => String(text) }),
      otherMountNamespaces: oneOf(OTHER_MOUNT_NAMESPACES),
    },
  ),
  (rules) => ({
    // One path can be written in two ways, and the API server compares texts.
    allowed: [...new Set(rules.allowed)],
    otherMountNamespaces: rules.otherMountNamespaces ?? DEFAULT_OTHER_MOUNT_NAMESPACES,
  }),
);

const containerRules: Check<ContainerRules> = mapped(
  object({}, { executables: executableRules }),
  (rules) => ({
    executables: rules.executables ?? { allowed: [], otherMountNamespaces: DEFAULT_OTHER_MOUNT_NAMESPACES },
  }),
);

export const rulesByContainer: Check<RulesByContainer> = mapOf(dnsLabel, containerRules, {
  max: MAX_CONTAINERS,
});
