import { formatFieldError } from '@runtime-enforcer/api/field-error';
import {
  formatDocumentError,
  formatPolicy,
  parseProposalDocuments,
} from '@runtime-enforcer/api/policy-document';
import { promote } from '@runtime-enforcer/api/promotion';
import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import { CommandError } from './command-error.ts';
import { readBoundedFile } from '../node/bounded-file.ts';
import { writeFileAtomically } from '../node/atomic-file.ts';

/**
 * Reads the WorkloadPolicyProposals of a file and returns or writes the policies they become.
 * @param output a file, replaced as a whole, or `-` for the text to be returned
 * @returns what to print
 */
export async function promoteFile(file: string, mode: PolicyMode, output: string): Promise<string> {
  const read = await readBoundedFile(file);
  if (!read.ok) throw new CommandError(`cannot read the proposal ${file}: ${read.problem}`);
  const parsed = parseProposalDocuments({ file, content: read.content });
  if (!parsed.ok) throw new CommandError(parsed.errors.map(formatDocumentError).join('\n'));
  const texts: string[] = [];
  const names: string[] = [];
  for (const proposal of parsed.values) {
    const promoted = promote(proposal, mode);
    if (!promoted.ok) {
      throw new CommandError(
        promoted.errors.map((error) => `${file}: ${formatFieldError(error)}`).join('\n'),
      );
    }
    names.push(`${promoted.value.metadata.namespace}/${promoted.value.metadata.name}`);
    texts.push(formatPolicy(promoted.value));
  }
  const text = texts.join('---\n');
  if (output === '-') return text;
  try {
    await writeFileAtomically(output, text);
  } catch (cause) {
    throw new CommandError(`cannot write the policy to ${output}`, { cause });
  }
  return `${names.join(', ')} written to ${output} in mode ${mode}\n`;
}
