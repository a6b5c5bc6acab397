import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Parsed } from './field-error.ts';
import { WORKLOAD_POLICY_PLURAL, WORKLOAD_POLICY_PROPOSAL_PLURAL } from './keys.ts';
import { workloadPolicyObject, workloadPolicyProposalObject } from './resource-object.ts';
import { admissionOf, readCrd } from './testing/custom-resource.ts';
import { damaged, policyObject, proposalObject } from './testing/resource-arbitrary.ts';
import { parseWorkloadPolicy } from './workload-policy.ts';
import { parseWorkloadPolicyProposal } from './workload-policy-proposal.ts';

const RUNS = 2000;

function admission(plural: string) {
  return admissionOf(readCrd(plural).crd.spec.versions[0].schema.openAPIV3Schema);
}
const admitPolicy = admission(WORKLOAD_POLICY_PLURAL);
const admitProposal = admission(WORKLOAD_POLICY_PROPOSAL_PLURAL);

function policyWith(spec: Record<string, unknown>) {
  return {
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { name: 'web' },
    spec: { mode: 'monitor', ...spec },
  };
}
const allowing = (...allowed: unknown[]) =>
  policyWith({ rulesByContainer: { app: { executables: { allowed } } } });

describe.each([
  ['WorkloadPolicy', policyObject, parseWorkloadPolicy, admitPolicy],
  ['WorkloadPolicyProposal', proposalObject, parseWorkloadPolicyProposal, admitProposal],
] as [
  string,
  fc.Arbitrary<Record<string, unknown>>,
  (input: unknown) => Parsed<unknown>,
  (input: unknown) => readonly string[],
][])('parse and CRD of %s', (_, objects, parse, admit) => {
  it.each([
    ['whole', objects],
    ['damaged', damaged(objects)],
  ])('give one answer for %s objects', (_, candidates) => {
    const answers = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(candidates, (object) => {
        const parsed = parse(object);
        expect({ accepts: parsed.ok, parsed }).toEqual({ accepts: admit(object).length === 0, parsed });
        answers[parsed.ok ? 'accepted' : 'refused']++;
      }),
      { numRuns: RUNS, seed: 20_260_131 },
    );
    // Objects that are all accepted, or all refused, would prove nothing.
    expect(answers.accepted).toBeGreaterThan(RUNS / 20);
    expect(answers.refused).toBeGreaterThan(RUNS / 20);
  });
});

describe('parse and CRD of WorkloadPolicy', () => {
  const paths = (count: number) => Array.from({ length: count }, (_, index) => `/bin/${index}`);
  const containers = (count: number) =>
    policyWith({ rulesByContainer: Object.fromEntries(paths(count).map((_, index) => [`c${index}`, {}])) });

  it.each<[string, unknown, boolean]>([
    ['1,000 paths in a container', allowing(...paths(1000)), true],
    ['1,001 paths in a container', allowing(...paths(1001)), false],
    ['64 containers', containers(64), true],
    ['65 containers', containers(65), false],
    ['a path of 4,095 bytes', allowing(`/${'a'.repeat(4094)}`), true],
    ['a path of 4,096 bytes', allowing(`/${'a'.repeat(4095)}`), false],
    ['a path of 4,095 escaped bytes', allowing(`/${String.raw`\xff`.repeat(4094)}`), true],
    ['a path that is a number', allowing(5), false],
    ['no spec', { ...policyWith({}), spec: undefined }, false],
  ])('%s', (_, object, accepted) => {
    const json: unknown = JSON.parse(JSON.stringify(object));
    expect({ crd: admitPolicy(json).length === 0, parse: parseWorkloadPolicy(json).ok }).toEqual({
      crd: accepted,
      parse: accepted,
    });
  });

  it.each([
    ['usr/bin/ls', 'must start with "/"'],
    ['/usr/', 'must not end with "/"'],
    ['/memfd:x', 'must not start with "/memfd:"'],
    ['/x (deleted)', 'must not end with " (deleted)"'],
  ])('has a message of its own for %j', (path, message) => {
    const schema = readCrd(WORKLOAD_POLICY_PLURAL).crd.spec.versions[0].schema.openAPIV3Schema;
    const withoutPatterns = JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
      key === 'pattern' ? '' : value,
    ) as typeof schema;
    expect(admissionOf(withoutPatterns)(allowing(path)).join()).toContain(message);
  });

  it('a path of too many bytes in few characters passes the CRD only, whose bound is in characters', () => {
    const object = allowing(`/${'é'.repeat(2048)}`);
    expect(admitPolicy(object)).toEqual([]);
    expect(parseWorkloadPolicy(object).ok).toBe(false);
  });

  it('null is refused here, where the API server drops it: a container without rules would be unrestricted', () => {
    for (const object of [
      policyWith({ rulesByContainer: null }),
      policyWith({ rulesByContainer: { app: null } }),
    ]) {
      expect(admitPolicy(object)).toEqual([]);
      expect(parseWorkloadPolicy(object).ok).toBe(false);
    }
  });

  it('what is written is what the API server takes, and reads back the same', () => {
    fc.assert(
      fc.property(policyObject, proposalObject, (policyInput, proposalInput) => {
        const policy = parseWorkloadPolicy(policyInput);
        if (policy.ok) {
          const written = workloadPolicyObject(policy.value);
          expect(admitPolicy(written)).toEqual([]);
          const again = parseWorkloadPolicy(written);
          expect(again.ok && workloadPolicyObject(again.value)).toEqual(written);
        }
        const proposal = parseWorkloadPolicyProposal(proposalInput);
        if (proposal.ok) {
          const written = workloadPolicyProposalObject(proposal.value);
          expect(admitProposal(written)).toEqual([]);
          const again = parseWorkloadPolicyProposal(written);
          expect(again.ok && workloadPolicyProposalObject(again.value)).toEqual(written);
        }
      }),
      { numRuns: 300 },
    );
  });
});
