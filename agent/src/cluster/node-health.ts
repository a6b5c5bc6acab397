import type { HealthChecks } from '@runtime-enforcer/telemetry/health-endpoint';

/** What readiness depends on, from the moment at which there is such a part. */
export interface HealthSubjects {
  /** Set while another agent enforces on this node, and this one waits for its end. */
  standby: string | undefined;
  /** Set while this agent enforces nothing because somebody took enforcement off the node. */
  released: string | undefined;
  node: { readonly synchronized: boolean; readonly attached: boolean } | undefined;
  policies: { waitingFor(): string | undefined } | undefined;
}

const NOT_ATTACHED = 'the program is not attached: enforcement was taken off this node';

/** Probes that latch nothing: each is as true as the moment in which it is asked. */
export function createNodeHealth(): HealthChecks & { readonly subjects: HealthSubjects } {
  const subjects: HealthSubjects = {
    ...{ standby: undefined, released: undefined, node: undefined, policies: undefined },
  };
  return {
    subjects,
    live: () => (subjects.node?.attached === false ? [NOT_ATTACHED] : []),
    ready() {
      const { standby, released, node, policies } = subjects;
      if (standby !== undefined) return [standby];
      if (released !== undefined) return [released];
      const problems: string[] = [];
      if (node?.synchronized !== true) problems.push('waiting for NRI synchronization to complete');
      const waiting = policies === undefined ? 'the agent is starting' : policies.waitingFor();
      if (waiting !== undefined)
        problems.push(`waiting for WorkloadPolicy synchronization to complete: ${waiting}`);
      if (node?.attached === false) problems.push(NOT_ATTACHED);
      return problems;
    },
  };
}
