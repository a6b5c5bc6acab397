import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDnsLabel, isDnsSubdomain } from '@runtime-enforcer/api/kubernetes-name';
import {
  formatDocumentError,
  formatProposal,
  parseProposalDocuments,
} from '@runtime-enforcer/api/policy-document';
import type { WorkloadPolicyProposal } from '@runtime-enforcer/api/workload-policy-proposal';
import { writeFileAtomically } from '../node/atomic-file.ts';
import { readBoundedFile } from '../node/bounded-file.ts';

/** Longest name of a file with its `.yaml`, as file systems have it. */
const MAX_FILE_NAME_BYTES = 255;
export const PROPOSAL_EXTENSION = '.yaml';

/** A proposal file that cannot be used; the message names it and says what to do. */
export class ProposalFileError extends Error {
  override readonly name = 'ProposalFileError';
}

/** One proposal on disk, which users may read, edit and remove at any time. */
export interface ProposalFile {
  readonly path: string;
  /**
   * What the file holds now; undefined if there is none. Rejects with a {@link ProposalFileError} if it holds
   * anything else than the one proposal that belongs there.
   */
  read(): Promise<WorkloadPolicyProposal | undefined>;
  /** Replaces the file. Rejects with a {@link ProposalFileError}. */
  write(proposal: WorkloadPolicyProposal): Promise<void>;
}

/**
 * The file of a proposal: `DIRECTORY/NAMESPACE/NAME.yaml`. Undefined for names that are none, and so could lead
 * elsewhere, and for those too long for a file.
 */
export function proposalFile(directory: string, namespace: string, name: string): ProposalFile | undefined {
  if (!isDnsLabel(namespace) || !isDnsSubdomain(name)) return undefined;
  if (name.length + PROPOSAL_EXTENSION.length > MAX_FILE_NAME_BYTES) return undefined;
  const path = join(directory, namespace, `${name}${PROPOSAL_EXTENSION}`);
  /** What was read or written last, for as long as nobody else touches the file. */
  let last: { readonly signature: string; readonly proposal: WorkloadPolicyProposal } | undefined;

  return {
    path,
    async read() {
      const signature = await signatureOf(path);
      if (signature === undefined) {
        last = undefined;
        return undefined;
      }
      if (last?.signature === signature) return last.proposal;
      const read = await readBoundedFile(path);
      if (!read.ok) throw new ProposalFileError(`cannot read the proposal ${path}: ${read.problem}`);
      const parsed = parseProposalDocuments({ file: path, content: read.content });
      if (!parsed.ok) {
        const [first] = parsed.errors;
        throw new ProposalFileError(
          `${first === undefined ? path : formatDocumentError(first)}; correct or remove the file`,
        );
      }
      const [proposal, second] = parsed.values;
      const isOurs = proposal?.metadata.name === name && proposal.metadata.namespace === namespace;
      if (!isOurs || second !== undefined) {
        throw new ProposalFileError(
          `${path} holds something else than the proposal ${namespace}/${name} alone; move it elsewhere`,
        );
      }
      last = { signature, proposal };
      return proposal;
    },
    async write(proposal) {
      try {
        await mkdir(dirname(path), { recursive: true });
        await writeFileAtomically(path, formatProposal(proposal));
        const signature = await signatureOf(path);
        last = signature === undefined ? undefined : { signature, proposal };
      } catch (cause) {
        last = undefined;
        throw new ProposalFileError(`cannot write the proposal ${path}`, { cause });
      }
    },
  };
}

async function signatureOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(':');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ProposalFileError(`cannot read the proposal ${path}`, { cause: error });
  }
}
