import type { ExecOrigin } from '@runtime-enforcer/api/exec-origin';
import { displayExecutable } from '@runtime-enforcer/api/executable-path';
import { PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { emptyProposal, learn, type LearnedExec } from '@runtime-enforcer/api/learned-paths';
import { MAX_LEARNED_PATHS } from '@runtime-enforcer/api/limits';
import type { Workload } from '@runtime-enforcer/api/workload';
import { POLICY_MODES } from '@runtime-enforcer/api/workload-policy';
import type { ProposalFile } from './proposal-file.ts';

/** Different observations that wait to be written. */
const MAX_WAITING = 4 * MAX_LEARNED_PATHS;
/** For how long a full proposal is taken to be full without looking at its file again. */
const FULL_FOR_MS = 30_000;

/** An exec of a container of the workload, as it is found. */
export interface Observed {
  readonly containerName: string;
  readonly podName: string;
  readonly path: Uint8Array;
  readonly origin: ExecOrigin;
  readonly count: bigint;
  /** Unix epoch, in milliseconds. */
  readonly firstMs: number;
  readonly lastMs: number;
}

/** What came of writing. */
export type WriteResult =
  | { readonly kind: 'nothing' | 'promoted' }
  | { readonly kind: 'written'; readonly added: readonly string[]; readonly refused: number };

/** What is learned of one workload, between two writings of its proposal. */
export interface WorkloadLearning {
  readonly file: ProposalFile;
  /** False: refused, because too much waits or the proposal is full. */
  observe(observed: Observed): boolean;
  readonly waiting: boolean;
  /** Forgets what waits: the workload has its policy. */
  discard(): void;
  /** Adds what waits to the file. Rejects with a ProposalFileError; what waits then goes on waiting. */
  write(): Promise<WriteResult>;
}

export function createWorkloadLearning(parts: {
  namespace: string;
  name: string;
  workload: Workload;
  nodeName: string;
  file: ProposalFile;
}): WorkloadLearning {
  const { namespace, name, workload, nodeName, file } = parts;
  let waiting = new Map<string, LearnedExec>();
  let full: { readonly untilMs: number; readonly listed: ReadonlySet<string> } | undefined;

  return {
    file,
    observe({ containerName, podName, path, origin, count, firstMs, lastMs }) {
      const shown = displayExecutable(path, 'file');
      if (full !== undefined && performance.now() >= full.untilMs) full = undefined;
      if (full !== undefined && !full.listed.has(`${containerName} ${shown}`)) return false;
      const id = JSON.stringify([containerName, podName, origin, shown]);
      const known = waiting.get(id);
      if (known === undefined && waiting.size >= MAX_WAITING) return false;
      waiting.set(id, {
        ...{ containerName, podName, path, origin, nodeName, kind: 'file' },
        count: Math.min((known?.count ?? 0) + Number(count), Number.MAX_SAFE_INTEGER),
        firstSeen: known?.firstSeen ?? new Date(firstMs).toISOString(),
        lastSeen: new Date(lastMs).toISOString(),
      });
      return true;
    },
    get waiting() {
      return waiting.size > 0;
    },
    discard() {
      waiting.clear();
    },
    async write() {
      if (waiting.size === 0) return { kind: 'nothing' };
      const before = (await file.read()) ?? emptyProposal(name, namespace, ownerOf(workload));
      if (POLICY_MODES.some((mode) => mode === before.metadata.labels.get(PROMOTE_LABEL))) {
        waiting.clear();
        return { kind: 'promoted' };
      }
      const taken = waiting;
      waiting = new Map();
      const { proposal, added, refused } = learn(before, taken.values());
      try {
        await file.write(proposal);
      } catch (error) {
        for (const [id, exec] of waiting) taken.set(id, together(taken.get(id), exec));
        waiting = taken;
        throw error;
      }
      const listed = new Set<string>();
      for (const [container, { executables }] of proposal.spec.rulesByContainer) {
        for (const path of executables.allowed) listed.add(`${container} ${path}`);
      }
      if (listed.size >= MAX_LEARNED_PATHS) full = { untilMs: performance.now() + FULL_FOR_MS, listed };
      const paths = added.map(({ containerName, executablePath }) => `${containerName}: ${executablePath}`);
      return { kind: 'written', added: paths, refused: refused.length };
    },
  };
}

function ownerOf({ kind, name }: Workload): { kind: string; name: string } | undefined {
  return kind === 'Pod' ? undefined : { kind, name };
}

function together(earlier: LearnedExec | undefined, later: LearnedExec): LearnedExec {
  if (earlier === undefined) return later;
  return { ...later, count: earlier.count + later.count, firstSeen: earlier.firstSeen };
}
