import { status, type ServiceError } from '@grpc/grpc-js';

/** What keeps a caller from an agent, in the terms in which it decides what to do. */
export type AgentCallProblem =
  /** Not reachable, its certificate or ours was refused, or the connection broke. */
  | 'unreachable'
  /** It did not answer in time. */
  | 'deadline'
  /** It knows us, and we may not call this. */
  | 'forbidden'
  /** The caller ended the call. */
  | 'cancelled'
  /** It does not know the method, or answered what cannot be read: another version, or no agent. */
  | 'incompatible'
  | 'failed';

/** A call to an agent that came to nothing. The message names the agent. */
export class AgentCallError extends Error {
  override readonly name = 'AgentCallError';
  readonly problem: AgentCallProblem;

  constructor(problem: AgentCallProblem, message: string, options?: ErrorOptions) {
    super(message, options);
    this.problem = problem;
  }
}

/** @param agent how messages name it */
export function agentCallError(agent: string, error: unknown): AgentCallError {
  if (error instanceof AgentCallError) return error;
  const { code, details } = error as Partial<ServiceError>;
  const text = details ?? (error instanceof Error ? error.message : String(error));
  return new AgentCallError(problemOf(code), `agent ${agent}: ${text}`, { cause: error });
}

function problemOf(code: status | undefined): AgentCallProblem {
  switch (code) {
    case status.UNAVAILABLE:
      return 'unreachable';
    case status.DEADLINE_EXCEEDED:
      return 'deadline';
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
      return 'forbidden';
    case status.CANCELLED:
      return 'cancelled';
    case status.UNIMPLEMENTED:
    case status.INTERNAL:
      return 'incompatible';
    default:
      return 'failed';
  }
}
