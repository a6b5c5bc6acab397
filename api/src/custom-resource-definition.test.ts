import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { OTHER_MOUNT_NAMESPACES } from './container-rules.ts';
import { MAX_PATH_BYTES, MAX_PATH_TEXT_CHARACTERS } from './executable-path.ts';
import { EXEC_ORIGINS } from './exec-origin.ts';
import {
  GROUP,
  VERSION,
  WORKLOAD_POLICY_KIND,
  WORKLOAD_POLICY_PLURAL,
  WORKLOAD_POLICY_PROPOSAL_KIND,
  WORKLOAD_POLICY_PROPOSAL_PLURAL,
} from './keys.ts';
import * as limits from './limits.ts';
import { nodesOf, readCrd, type SchemaNode } from './testing/custom-resource.ts';
import { structuralProblems } from './testing/structural-schema.ts';
import { VIOLATION_ACTIONS, VIOLATION_REASONS } from './violation.ts';
import { POLICY_MODES, UNLISTED_CONTAINERS } from './workload-policy.ts';
import { NODE_CODES, POLICY_PHASES } from './workload-policy-status.ts';

const policy = readCrd(WORKLOAD_POLICY_PLURAL);
const proposal = readCrd(WORKLOAD_POLICY_PROPOSAL_PLURAL);
const schemas = [policy, proposal].map(({ crd }) => crd.spec.versions[0].schema.openAPIV3Schema);
const [policySchema = {}, proposalSchema = {}] = schemas;

function at(schema: SchemaNode, path: string): SchemaNode {
  for (const [place, node] of nodesOf(schema)) if (place === path) return node;
  throw new Error(`the schema has no ${path}`);
}

const ALLOWED = '.spec.rulesByContainer.*.executables.allowed';

describe('the CRDs', () => {
  it.each([
    [policy, WORKLOAD_POLICY_PLURAL, WORKLOAD_POLICY_KIND, 'wp'],
    [proposal, WORKLOAD_POLICY_PROPOSAL_PLURAL, WORKLOAD_POLICY_PROPOSAL_KIND, 'wpp'],
  ])('%# have the names that the code uses', ({ text, crd }, plural, kind, shortName) => {
    expect(crd).toMatchObject({
      apiVersion: 'apiextensions.k8s.io/v1',
      metadata: { name: `${plural}.${GROUP}`, annotations: { 'helm.sh/resource-policy': 'keep' } },
      spec: {
        group: GROUP,
        scope: 'Namespaced',
        names: {
          kind,
          listKind: `${kind}List`,
          plural,
          singular: kind.toLowerCase(),
          shortNames: [shortName],
        },
        versions: [{ name: VERSION, served: true, storage: true, subresources: { status: {} } }],
      },
    });
    // Helm would take it for a template.
    expect(text).not.toContain('{{');
  });

  it('print the columns that users know', () => {
    expect(policy.crd.spec.versions[0].additionalPrinterColumns).toEqual([
      { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
      { name: 'Status', type: 'string', jsonPath: '.status.phase' },
      { name: 'Active Violations', type: 'string', jsonPath: '.status.activeViolationCount' },
      { name: 'Total Violations', type: 'string', jsonPath: '.status.violationCount' },
    ]);
    expect(proposal.crd.spec.versions[0].additionalPrinterColumns).toBeUndefined();
  });

  it.each(schemas)('%# are structural and bounded', (schema) => {
    expect(structuralProblems(schema)).toEqual([]);
  });

  it.each(schemas)('%# have defaults that their own schema accepts', (schema) => {
    const defaults = [...nodesOf(schema)].filter(([, node]) => node['default'] !== undefined);
    expect(defaults.length).toBeGreaterThan(0);
    const ajv = new Ajv({ strict: false, formats: { int32: true, int64: true } });
    for (const [path, node] of defaults) expect(ajv.validate(node, node['default']), path).toBe(true);
  });

  it('state the same schema for every path and for the rules of both kinds', () => {
    expect(at(proposalSchema, '.spec.rulesByContainer')).toEqual(at(policySchema, '.spec.rulesByContainer'));
    expect(at(proposalSchema, '.status.observations[].executablePath')).toEqual(
      at(policySchema, `${ALLOWED}[]`),
    );
    expect(at(proposalSchema, '.status.mergedFrom')).toEqual(at(policySchema, '.status.mergedFrom'));
    expect(at(policySchema, '.status.acknowledgedViolations[].violation')).toEqual(
      at(policySchema, '.status.violations[]'),
    );
  });

  it('state the bounds that the code enforces', () => {
    expect({
      containers: at(policySchema, '.spec.rulesByContainer')['maxProperties'],
      paths: at(policySchema, ALLOWED)['maxItems'],
      pathText: at(policySchema, `${ALLOWED}[]`)['maxLength'],
      pathCharacters: at(policySchema, `${ALLOWED}[]`)['anyOf'],
      observations: at(proposalSchema, '.status.observations')['maxItems'],
      pods: at(proposalSchema, '.status.observations[].pods')['maxItems'],
      nodes: at(proposalSchema, '.status.observations[].nodes')['maxItems'],
      nodesWithIssues: at(policySchema, '.status.nodesWithIssues')['maxProperties'],
      nodesTransitioning: at(policySchema, '.status.nodesTransitioning')['maxItems'],
      violations: at(policySchema, '.status.violations')['maxItems'],
      acknowledged: at(policySchema, '.status.acknowledgedViolations')['maxItems'],
      conditions: at(policySchema, '.status.conditions')['maxItems'],
      mergedFrom: at(policySchema, '.status.mergedFrom')['maxItems'],
      incarnation: at(policySchema, '.status.mergedFrom[].incarnation')['maxLength'],
      message: at(policySchema, '.status.conditions[].message')['maxLength'],
    }).toEqual({
      containers: limits.MAX_CONTAINERS,
      paths: limits.MAX_PATHS_PER_CONTAINER,
      pathText: MAX_PATH_TEXT_CHARACTERS,
      pathCharacters: [{ maxLength: MAX_PATH_BYTES }, { pattern: '\\\\' }],
      observations: limits.MAX_LEARNED_PATHS,
      pods: limits.MAX_OBSERVED_NAMES,
      nodes: limits.MAX_OBSERVED_NAMES,
      nodesWithIssues: limits.MAX_STATUS_NODES,
      nodesTransitioning: limits.MAX_STATUS_NODES,
      violations: limits.MAX_VIOLATION_RECORDS,
      acknowledged: limits.MAX_VIOLATION_RECORDS,
      conditions: limits.MAX_CONDITIONS,
      mergedFrom: limits.MAX_MERGE_POSITIONS,
      incarnation: limits.MAX_INCARNATION_CHARACTERS,
      message: limits.MAX_MESSAGE_CHARACTERS,
    });
  });

  it.each([
    ['.spec.mode', POLICY_MODES],
    ['.spec.unlistedContainers', UNLISTED_CONTAINERS],
    ['.spec.rulesByContainer.*.executables.otherMountNamespaces', OTHER_MOUNT_NAMESPACES],
    ['.status.phase', POLICY_PHASES],
    ['.status.nodesWithIssues.*.code', NODE_CODES],
    ['.status.violations[].action', VIOLATION_ACTIONS],
    ['.status.violations[].reason', VIOLATION_REASONS],
    ['.status.violations[].origin', EXEC_ORIGINS],
  ])('list the values of %s that the code knows', (path, values) => {
    expect(at(policySchema, path)['enum']).toEqual([...values]);
  });
});

describe('structuralProblems', () => {
  const text = { type: 'string', maxLength: 5 };
  it.each<[string, SchemaNode, string]>([
    ['a node without a type', { maxLength: 5 }, 'no type'],
    ['an unknown type', { type: 'text' }, 'type text is unknown'],
    ['a forbidden keyword', { ...text, const: 'x' }, 'keyword const'],
    ['a misspelt keyword', { ...text, maxlength: 5 }, 'keyword maxlength'],
    [
      'patternProperties',
      { type: 'object', properties: {}, patternProperties: {} },
      'keyword patternProperties',
    ],
    ['a type inside anyOf', { ...text, anyOf: [{ type: 'string' }] }, 'type inside anyOf'],
    [
      'fields inside not',
      { type: 'object', properties: {}, not: { properties: {} } },
      'properties inside not',
    ],
    ['both kinds of fields', { type: 'object', properties: {}, additionalProperties: text }, 'beside'],
    [
      'a list without a type of list',
      { type: 'array', maxItems: 1, items: text },
      'no x-kubernetes-list-type',
    ],
    [
      'a set of objects',
      {
        type: 'array',
        maxItems: 1,
        'x-kubernetes-list-type': 'set',
        items: { type: 'object', properties: {} },
      },
      'a set of what is not scalar',
    ],
    [
      'a map key that may be missing',
      {
        type: 'array',
        maxItems: 1,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: { type: 'object', properties: { name: text } },
      },
      'neither required nor defaulted',
    ],
    ['a map type of a text', { ...text, 'x-kubernetes-map-type': 'atomic' }, 'a map type outside an object'],
    [
      'a rule without a message',
      { ...text, 'x-kubernetes-validations': [{ rule: 'true' }] },
      'no one-line message',
    ],
    ['an unbounded text', { type: 'string' }, 'text without maxLength'],
    ['an unbounded map', { type: 'object', additionalProperties: text }, 'a map without maxProperties'],
    [
      'a required field that is none',
      { type: 'object', properties: {}, required: ['x'] },
      'required field x',
    ],
    [
      'a fault below',
      { type: 'object', properties: { a: { type: 'object' } } },
      '.a: an object without fields',
    ],
  ])('finds %s', (_, schema, problem) => {
    expect(structuralProblems(schema).join('\n')).toContain(problem);
  });
});
