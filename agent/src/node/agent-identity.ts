/** Who an agent is, to another one on the same node. */
export interface AgentIdentity {
  readonly pid: number;
  /** `namespace/name` of its pod; empty where it does not know it. */
  readonly pod: string;
  readonly version: string;
}

export function isIdentity(value: unknown): value is AgentIdentity {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, pod, version } = value as Partial<AgentIdentity>;
  return Number.isSafeInteger(pid) && typeof pod === 'string' && typeof version === 'string';
}

/** For people. */
export function describeAgent({ pid, pod, version }: AgentIdentity): string {
  const place = pod === '' ? '' : ` of pod ${pod}`;
  return `the agent${place} (pid ${pid}, version ${version})`;
}
