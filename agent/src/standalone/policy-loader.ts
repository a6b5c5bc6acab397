import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { formatDocumentError } from '@runtime-enforcer/api/policy-document';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ContainerBinder } from '../containers/container-binder.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import type { PolicyTable } from '../policies/policy-table.ts';
import type { FileChange } from './directory-scan.ts';
import { createPathSharing } from './path-sharing.ts';
import type { PolicyParser } from './policy-parser.ts';
import { policyKey, type FilePolicies, type PolicySet } from './policy-set.ts';

/** How long files are read before the container runtime gets its turn. */
const TURN_MS = 20;
/** Errors of one file that are logged. */
const MAX_ERRORS_TOLD = 20;

/** The part of the kernel's policies that files change. */
export type LoadedPolicies = Pick<PolicyTable, 'apply' | 'remove' | 'state' | 'states'>;

/** Brings changed policy files into the kernel. */
export interface PolicyLoader {
  /** Resolves when the changes are in effect. Never rejects: what goes wrong is logged and counted. */
  load(changes: readonly FileChange[]): Promise<void>;
}

export function createPolicyLoader(parts: {
  directory: string;
  parser: Pick<PolicyParser, 'parse'>;
  policies: PolicySet;
  table: LoadedPolicies;
  binder: Pick<ContainerBinder, 'policyChanged' | 'containers'>;
  /** A container that ran unbound until now is bound. */
  onBoundLate: (container: BoundContainer) => void;
  log: Logger;
  counters: AgentCounters;
}): PolicyLoader {
  const { directory, parser, policies, table, binder, onBoundLate, log, counters } = parts;

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

  const bindAgain = async (key: string): Promise<void> => {
    const waiting = new Set<string>();
    for (const container of binder.containers()) {
      if (container.policy === key && container.state === 'waiting') waiting.add(container.containerId);
    }
    const bound = await binder.policyChanged(key);
    for (const container of bound) {
      if (!waiting.has(container.containerId)) continue;
      const { namespace, podName, containerName, state } = container;
      log.info({ policy: key, namespace, podName, containerName, state }, 'waiting container bound');
      onBoundLate(container);
    }
  };

  const apply = async (policy: WorkloadPolicy, file: string): Promise<void> => {
    const key = policyKey(policy);
    const { state, mode, message, paths, digest } = await table.apply(policy);
    const fields = { policy: key, mode, paths, digest, file: join(directory, file) };
    if (state === 'failed') {
      counters.add('policies_failed');
      log.error({ ...fields, problem: message }, 'policy failed');
    }
    await bindAgain(key);
    if (state !== 'failed') log.info(fields, 'policy loaded');
  };

  const remove = async (key: string): Promise<void> => {
    await table.remove(key);
    await bindAgain(key);
    const retained = table.state(key) !== undefined;
    log.info({ policy: key, retained }, 'policy removed');
  };

  const survive = async (policy: string, work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      counters.add('policies_failed');
      log.error({ err: error, policy }, 'policy could not be changed');
    }
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
        ...change.apply.map(({ policy, file }) => survive(policyKey(policy), apply(policy, file))),
        ...change.remove.map((key) => survive(key, remove(key))),
      ]);
    },
  };
}
