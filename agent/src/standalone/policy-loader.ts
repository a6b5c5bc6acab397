import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { formatDocumentError } from '@runtime-enforcer/api/policy-document';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import type { PolicyEffect } from '../node/policy-effect.ts';
import type { FileChange } from './directory-scan.ts';
import { createPathSharing } from '../policies/path-sharing.ts';
import type { PolicyParser } from './policy-parser.ts';
import type { FilePolicies, PolicySet } from './policy-set.ts';

/** How long files are read before the container runtime gets its turn. */
const TURN_MS = 20;
/** Errors of one file that are logged. */
const MAX_ERRORS_TOLD = 20;

/** Brings changed policy files into the kernel. */
export interface PolicyLoader {
  /** Resolves when the changes are in effect. Never rejects: what goes wrong is logged and counted. */
  load(changes: readonly FileChange[]): Promise<void>;
}

export function createPolicyLoader(parts: {
  directory: string;
  parser: Pick<PolicyParser, 'parse'>;
  policies: PolicySet;
  effect: PolicyEffect;
  log: Logger;
  counters: AgentCounters;
}): PolicyLoader {
  const { directory, parser, policies, effect, log, counters } = parts;

  const sharing = createPathSharing();

  /** The policies of a changed file, or undefined if those it had stay. */
  const read = async (change: FileChange): Promise<FilePolicies | undefined> => {
    const { file } = change;
    const path = join(directory, file);
    if (change.kind === 'removed') return { file, policies: [] };
    if (change.kind === 'unreadable') {
      counters.add('policy_files_unreadable');
      log.error(
        { file: path, problem: change.problem },
        'policy file cannot be read; policies that were read from it before stay in force',
      );
      return undefined;
    }
    const parsed = await parser.parse({ file: path, content: change.content });
    if (parsed.ok) return { file, policies: parsed.values.map((policy) => sharing.shared(policy)) };
    counters.add('policy_files_broken');
    log.error(
      {
        file: path,
        errors: parsed.errors.slice(0, MAX_ERRORS_TOLD).map(formatDocumentError),
        errorCount: parsed.errors.length,
      },
      'policy file refused; policies that were read from it before stay in force',
    );
    return undefined;
  };

  return {
    async load(changes) {
      const files: FilePolicies[] = [];
      let turnBegan = performance.now();
      for (const change of changes) {
        const file = await read(change);
        if (file !== undefined) files.push(file);
        if (performance.now() - turnBegan < TURN_MS) continue;
        await setImmediate();
        turnBegan = performance.now();
      }
      const change = policies.update(files);
      for (const { policy, file, owner } of change.conflicts) {
        counters.add('policy_files_broken');
        log.error(
          { policy, file: join(directory, file), other: join(directory, owner) },
          `policy ${policy} stands in two files; the one in ${join(directory, owner)}, read first, stays in force: ` +
            `remove it from one of them`,
        );
      }
      await Promise.all([
        ...change.apply.map(({ policy, file }) => effect.apply(policy, { file: join(directory, file) })),
        ...change.remove.map((key) => effect.remove(key)),
      ]);
    },
  };
}
