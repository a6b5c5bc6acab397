import { checkAgentMetrics, checkAgents, checkRuntimes } from './agent-checks.ts';
import type { ClusterFacts } from './facts.ts';
import type { Finding, Severity } from './finding.ts';
import {
  checkAdmission,
  checkCertificates,
  checkControllers,
  checkCustomResources,
} from './installation-checks.ts';
import {
  checkPods,
  checkPolicies,
  checkProposals,
  checkReadable,
  checkWorkloadLabels,
} from './resource-checks.ts';

const CHECKS: readonly ((facts: ClusterFacts) => readonly Finding[])[] = [
  checkCustomResources,
  checkControllers,
  checkAdmission,
  checkCertificates,
  checkAgents,
  checkAgentMetrics,
  checkRuntimes,
  checkWorkloadLabels,
  checkPods,
  checkReadable,
  checkPolicies,
  checkProposals,
];

/** What one may not be permitted to see. */
const ASKED = [
  'customResources',
  'webhooks',
  'admissionPolicies',
  'agents',
  'controllers',
  'nodes',
  'secrets',
  'policies',
  'proposals',
  'pods',
  'workloads',
] as const satisfies readonly (keyof ClusterFacts)[];

const RANK: Readonly<Record<Severity, number>> = { error: 0, warning: 1, note: 2 };

/** What is wrong, the worst first. Who could not look at something does not know that nothing is wrong there. */
export function diagnose(facts: ClusterFacts): readonly Finding[] {
  const blind = ASKED.flatMap((name): readonly Finding[] => {
    const fact = facts[name];
    if (fact.ok) return [];
    const message = `it could not be looked at: ${fact.why}`;
    const repair = 'kubectl auth can-i --list';
    return [{ check: 'permissions', severity: 'warning', subject: name, message, repair }];
  });
  return [...CHECKS.flatMap((check) => check(facts)), ...blind].toSorted(
    (one, other) => RANK[one.severity] - RANK[other.severity],
  );
}
