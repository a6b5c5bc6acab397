import { readPolicyBinding } from './binding.ts';
import { executablePathBytes, type ExecutablePath } from './executable-path.ts';
import { decide } from './matcher.ts';
import type { WorkloadPolicy } from './workload-policy.ts';
import type { NodeIssue } from './workload-policy-status.ts';

/** One exec that somebody asks about, and what is known about where it would happen. */
export interface ExplainedExec {
  readonly podName: string;
  readonly labels: ReadonlyMap<string, string>;
  /** Undefined while the pod has no node. */
  readonly nodeName: string | undefined;
  readonly container: string;
  readonly path: ExecutablePath;
  /** The policy of the name in the pod's label, or `missing`; not looked at where the label names none. */
  readonly policy: WorkloadPolicy | 'missing';
}

/**
 * `allowed`: on the list. `unrestricted`: nothing is checked here. `denied`, `reported`: not on the list. `unbound`:
 * the label names what does not exist, so that a new container does not start and a running one is not checked.
 */
export type ExplainedOutcome = 'allowed' | 'unrestricted' | 'denied' | 'reported' | 'unbound';

/** One question that decides, in the order in which they are asked. Texts hold no tenant input but names and paths. */
export interface ExplainedStep {
  readonly question: string;
  readonly answer: string;
}

export interface Explanation {
  readonly outcome: ExplainedOutcome;
  readonly steps: readonly ExplainedStep[];
  /** Listed paths that end in the same name: the kernel may know the file by one of these. */
  readonly sameName: readonly ExecutablePath[];
  /** The node has not (yet) loaded the policy as it is now. */
  readonly nodeIssue?: NodeIssue;
}

/** What happens when a container of a pod starts an executable that the kernel resolves to a path, and why. */
export function explainExec(exec: ExplainedExec): Explanation {
  const { podName, container, path, policy } = exec;
  const steps: ExplainedStep[] = [];
  const binding = readPolicyBinding(exec.labels);
  const asked = `Does pod ${podName} name a policy in its label?`;
  switch (binding.kind) {
    case 'unlabelled':
      steps.push({ question: asked, answer: 'no: nothing is checked, and what starts is learned' });
      return { outcome: 'unrestricted', steps, sameName: [] };
    case 'empty':
      steps.push({ question: asked, answer: 'the label is empty: nothing is checked' });
      return { outcome: 'unrestricted', steps, sameName: [] };
    case 'invalid':
      steps.push({ question: asked, answer: `yes, but no policy can have that name: ${binding.message}` });
      return { outcome: 'unbound', steps, sameName: [] };
    case 'policy':
      steps.push({ question: asked, answer: `yes: ${binding.policyName}` });
  }
  const exists = `Does WorkloadPolicy ${binding.policyName} exist?`;
  if (policy === 'missing') {
    steps.push({
      question: exists,
      answer: 'no: new containers do not start; running ones are not checked until it exists',
    });
    return { outcome: 'unbound', steps, sameName: [] };
  }
  steps.push({ question: exists, answer: `yes, in mode ${policy.spec.mode}` });
  const nodeIssue = issueOnNode(policy, exec.nodeName);
  const { nodeName } = exec;
  if (nodeName !== undefined && policy.status !== undefined) {
    const question = `Has node ${nodeName} loaded it?`;
    if (nodeIssue === undefined) steps.push({ question, answer: 'no trouble is reported' });
    else steps.push({ question, answer: `${nodeIssue.code}: ${nodeIssue.message ?? 'no message'}` });
  }

  const rules = policy.spec.rulesByContainer.get(container)?.executables;
  const named = `Does the policy name container ${container}?`;
  const { unlistedContainers } = policy.spec;
  if (rules === undefined) {
    const answer =
      unlistedContainers === 'allow'
        ? 'no, and unlistedContainers is allow: nothing is checked in it'
        : 'no, and unlistedContainers is deny: nothing may start in it';
    steps.push({ question: named, answer });
  } else {
    steps.push({ question: named, answer: `yes, with ${rules.allowed.length} allowed paths` });
    const answer = rules.allowed.includes(path) ? 'yes' : 'no';
    steps.push({ question: `Is ${path} one of them?`, answer });
  }

  const decision = decide(policy.spec, {
    container,
    path: executablePathBytes(path),
    kind: 'file',
    mountNamespace: 'own',
  });
  const common = { steps, ...(nodeIssue && { nodeIssue }) };
  if (decision.outcome !== 'violation') {
    const outcome = decision.outcome === 'allowed' ? 'allowed' : 'unrestricted';
    return { outcome, sameName: [], ...common };
  }
  const name = path.slice(path.lastIndexOf('/'));
  return {
    outcome: decision.action === 'protect' ? 'denied' : 'reported',
    sameName: rules?.allowed.filter((listed) => listed.endsWith(name)) ?? [],
    ...common,
  };
}

/** What a policy's status says against its being enforced on a node; undefined when it says nothing. */
export function issueOnNode(policy: WorkloadPolicy, nodeName: string | undefined): NodeIssue | undefined {
  if (nodeName === undefined) return undefined;
  return (
    policy.status?.nodesWithIssues.get(nodeName) ??
    policy.status?.nodesTransitioning.find((node) => node.nodeName === nodeName)
  );
}
