import { checkAgentMetrics, checkAgents, checkRuntimes } from './agent-checks.ts';
import type { ClusterFacts } from './facts.ts';
import type { Finding, Severity } from './finding.ts';
import {
  checkAdmission,
  checkCertificates,
  checkControllers,
  checkCustomResources,
} from './installation-checks.ts';
import { checkPods, checkPolicies, checkProposals, checkWorkloadLabels } from './resource-checks.ts';

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

/** What is wrong, the worst first; what could not be looked at is a note. */
export function diagnose(facts: ClusterFacts): readonly Finding[] {
  const blind = ASKED.flatMap((name): readonly Finding[] => {
    const fact = facts[name];
    if (fact.ok) return [];
    const message = `it could not be looked at: ${fact.why}`;
    return [
      { check: 'permissions', severity: 'note', subject: name, message, repair: 'kubectl auth can-i --list' },
    ];
  });
  return [...CHECKS.flatMap((check) => check(facts)), ...blind].toSorted(
    (one, other) => RANK[one.severity] - RANK[other.severity],
  );
}
