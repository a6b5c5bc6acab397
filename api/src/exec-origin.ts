/**
 * Where an exec came from: the container's own process tree; a command run in the container from outside
 * (`kubectl exec`); a probe or lifecycle hook of the pod; found running when learning began.
 */
export type ExecOrigin = 'entrypoint' | 'exec' | 'probe' | 'snapshot' | 'unknown';

export const EXEC_ORIGINS = [
  'entrypoint',
  'exec',
  'probe',
  'snapshot',
  'unknown',
] as const satisfies readonly ExecOrigin[];
