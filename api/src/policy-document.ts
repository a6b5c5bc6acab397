import type { FieldError, Parsed } from './field-error.ts';
import { workloadPolicyObject, workloadPolicyProposalObject } from './resource-object.ts';
import { parseWorkloadPolicy, type WorkloadPolicy } from './workload-policy.ts';
import { parseWorkloadPolicyProposal, type WorkloadPolicyProposal } from './workload-policy-proposal.ts';
import { readYaml, type YamlDocument } from './yaml-document.ts';
import { yamlText } from './yaml-text.ts';

/** A file's name, for the errors, and its bytes. */
export interface SourceFile {
  readonly file: string;
  readonly content: Uint8Array;
}

/** What is wrong with a file, and where. */
export interface DocumentError {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** In characters, from 1. */
  readonly column: number;
  /** Such as `spec.mode`; empty when it is about the file or a whole document. */
  readonly field: string;
  readonly message: string;
  readonly expected: string;
  readonly remedy?: string;
}

export type Documents<T> =
  | { readonly ok: true; readonly values: readonly T[] }
  | { readonly ok: false; readonly errors: readonly DocumentError[] };

/** Reads the WorkloadPolicies of a file: at least one, no two of the same name and namespace. All or nothing. */
export function parsePolicyDocuments(source: SourceFile): Documents<WorkloadPolicy> {
  return parseDocuments(source, parseWorkloadPolicy);
}

/** Reads the WorkloadPolicyProposals of a file in the same way. */
export function parseProposalDocuments(source: SourceFile): Documents<WorkloadPolicyProposal> {
  return parseDocuments(source, parseWorkloadPolicyProposal);
}

/** The same text for equal policies: fields in reading order, containers and paths sorted, one path a line. */
export function formatPolicy(policy: WorkloadPolicy): string {
  return yamlText(workloadPolicyObject(policy));
}

export function formatProposal(proposal: WorkloadPolicyProposal): string {
  return yamlText(workloadPolicyProposalObject(proposal));
}

/** One line: `web.yaml:12:7: spec.mode: "blok" is not known; expected one of monitor, protect`. */
export function formatDocumentError(error: DocumentError): string {
  const field = error.field === '' ? '' : ` ${error.field}:`;
  const remedy = error.remedy === undefined ? '' : `; ${error.remedy}`;
  const { file, line, column, message, expected } = error;
  return `${file}:${line}:${column}:${field} ${message}; expected ${expected}${remedy}`;
}

interface Named {
  readonly metadata: { readonly name: string; readonly namespace: string };
}

function parseDocuments<T extends Named>(
  { file, content }: SourceFile,
  parse: (input: unknown) => Parsed<T>,
): Documents<T> {
  const yaml = readYaml(content);
  if (!yaml.ok) return { ok: false, errors: yaml.errors.map((error) => ({ file, field: '', ...error })) };
  const values: T[] = [];
  const errors: DocumentError[] = [];
  const lineByName = new Map<string, number>();
  for (const document of yaml.documents) {
    const parsed = parse(document.data);
    if (!parsed.ok) {
      errors.push(...ofOneKind(parsed.errors).map((error) => located(file, document, error)));
      continue;
    }
    const { name, namespace } = parsed.value.metadata;
    const { line, column } = document.locate(['metadata', 'name']);
    const firstLine = lineByName.get(`${namespace}/${name}`);
    if (firstLine !== undefined) {
      errors.push({
        file,
        line,
        column,
        field: 'metadata.name',
        message: `${namespace}/${name} stands in line ${firstLine} already`,
        expected: 'every name once',
        remedy: 'remove one of the two documents, or rename it',
      });
    }
    lineByName.set(`${namespace}/${name}`, firstLine ?? line);
    values.push(parsed.value);
  }
  if (errors.length > 0) return { ok: false, errors };
  if (values.length > 0) return { ok: true, values };
  const empty = { message: 'the file holds no document', expected: 'at least one resource' };
  return { ok: false, errors: [{ file, line: 1, column: 1, field: '', ...empty }] };
}

/** Of another kind of resource every field is unknown, which says nothing. */
function ofOneKind(errors: readonly FieldError[]): readonly FieldError[] {
  const kindErrors = errors.filter(({ path }) => path === 'apiVersion' || path === 'kind');
  return kindErrors.length > 0 ? kindErrors : errors;
}

function located(file: string, document: YamlDocument, error: FieldError): DocumentError {
  const { line, column } = document.locate(error.segments);
  const { path, message, expected, remedy } = error;
  return { file, line, column, field: path, message, expected, ...(remedy !== undefined && { remedy }) };
}
