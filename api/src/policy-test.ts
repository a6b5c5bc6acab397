import { executablePath } from './container-rules.ts';
import { executablePathBytes, type ExecutablePath } from './executable-path.ts';
import { formatFieldPath, type Parsed } from './field-error.ts';
import { API_VERSION } from './keys.ts';
import { dnsLabel } from './kubernetes-name.ts';
import { type Decision, decide } from './matcher.ts';
import { list, mapped, object, oneOf, parseWith, text, type Check } from './schema.ts';
import { type WorkloadPolicySpec, POLICY_MODES, type PolicyMode } from './workload-policy.ts';

export const POLICY_TEST_KIND = 'PolicyTest';

/** `deny`: not on the list, so denied in protect mode and reported in monitor mode. */
export type ExpectedAnswer = 'allow' | 'deny';

export interface ExpectedExec {
  readonly container: string;
  readonly path: ExecutablePath;
  readonly expect: ExpectedAnswer;
  /** Where the task is in another mount namespace than its container's. */
  readonly mountNamespace: 'own' | 'other';
}

/** Execs and the answers that a policy must give them. */
export interface PolicyTest {
  readonly name: string;
  /** The file of the policy, relative to that of the test. */
  readonly policy: string;
  /** Which policy of the file; needed where it holds several. */
  readonly policyName?: string;
  readonly expectMode?: PolicyMode;
  readonly execs: readonly ExpectedExec[];
}

const MAX_EXECS = 10_000;
const name = text({ max: 253 });

const expectedExec: Check<ExpectedExec> = mapped(
  object(
    { container: dnsLabel, path: executablePath, expect: oneOf(['allow', 'deny']) },
    { mountNamespace: oneOf(['own', 'other']) },
  ),
  (exec) => ({ ...exec, mountNamespace: exec.mountNamespace ?? 'own' }),
);

const policyTest: Check<PolicyTest> = mapped(
  object(
    {
      apiVersion: oneOf([API_VERSION]),
      kind: oneOf([POLICY_TEST_KIND]),
      metadata: object({ name }, {}),
      policy: text({ max: 4096 }),
      execs: list(expectedExec, { max: MAX_EXECS }),
    },
    { policyName: name, expectMode: oneOf(POLICY_MODES) },
  ),
  ({ metadata, policy, policyName, expectMode, execs }) => ({
    name: metadata.name,
    policy,
    execs,
    ...(policyName !== undefined && { policyName }),
    ...(expectMode !== undefined && { expectMode }),
  }),
);

/** Reads a PolicyTest from what YAML yields. Every unknown field is an error. */
export function parsePolicyTest(input: unknown): Parsed<PolicyTest> {
  return parseWith(policyTest, input);
}

/** One answer that was expected. */
export interface PolicyTestCase {
  readonly title: string;
  /** What came instead; undefined for a case that passed. */
  readonly failure?: string;
}

/** Puts each exec of a test to a policy, with the matcher that agrees with the kernel. */
export function runPolicyTest(test: PolicyTest, policy: WorkloadPolicySpec): PolicyTestCase[] {
  const cases = test.execs.map((exec, index): PolicyTestCase => {
    const { container, path, expect, mountNamespace } = exec;
    const decision = decide(policy, {
      container,
      path: executablePathBytes(path),
      kind: 'file',
      mountNamespace,
    });
    const place = mountNamespace === 'other' ? ' from another mount namespace' : '';
    const title = `${container}: ${path}${place} is ${expect === 'allow' ? 'allowed' : 'denied'}`;
    const answer: ExpectedAnswer = decision.outcome === 'violation' ? 'deny' : 'allow';
    if (answer === expect) return { title };
    return { title, failure: `${formatFieldPath(['execs', index])}: ${describe(decision, container)}` };
  });
  if (test.expectMode === undefined) return cases;
  const title = `the mode is ${test.expectMode}`;
  const isRight = policy.mode === test.expectMode;
  return [{ title, ...(!isRight && { failure: `the mode is ${policy.mode}` }) }, ...cases];
}

function describe(decision: Decision, container: string): string {
  switch (decision.outcome) {
    case 'allowed':
      return 'the path is on the list';
    case 'unrestricted':
      return `the policy does not name container ${container} and leaves such containers alone`;
    case 'unchecked':
      return `the rules of ${container} leave other mount namespaces unchecked`;
    case 'violation':
      return `the exec is a violation (${decision.reason})`;
  }
}
