import { Worker } from 'node:worker_threads';
import {
  parsePolicyDocuments,
  type DocumentError,
  type Documents,
  type SourceFile,
} from '@runtime-enforcer/api/policy-document';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { builtFiles } from '../built-files.ts';

/** Largest file that is read on the event loop: some tens of milliseconds of work. */
const INLINE_BYTES = 8 * 1024;
/** Longest time a file may take in the thread. */
const PARSE_TIMEOUT_MS = 60_000;
/** The thread ends when there was nothing to read for so long; it holds some MiB. */
const IDLE_MS = 5_000;
/** Heap of the thread, in MiB: many times what the largest file needs. */
const HEAP_MIB = 1024;

function startThread(): Worker {
  const thread = new Worker(builtFiles().policyParserWorker, {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  });
  // Without a listener an error of the thread would end the process.
  return thread.on('error', () => undefined);
}

/** Reads policy files, large ones in a thread of their own, so that no file keeps the runtime waiting. */
export interface PolicyParser {
  /** Never rejects: a file that cannot be handled is an error like any other. */
  parse(source: SourceFile): Promise<Documents<WorkloadPolicy>>;
  stop(): Promise<void>;
}

export function createPolicyParser(): PolicyParser {
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  let last: Promise<unknown> = Promise.resolve();

  const end = async (): Promise<void> => {
    clearTimeout(idle);
    const ending = worker;
    worker = undefined;
    await ending?.terminate();
  };

  const parseInThread = async (source: SourceFile): Promise<Documents<WorkloadPolicy>> => {
    clearTimeout(idle);
    worker ??= startThread();
    const thread = worker;
    const { promise, resolve, reject } = Promise.withResolvers<Documents<WorkloadPolicy>>();
    const timer = setTimeout(
      () => reject(new Error(`reading took longer than ${PARSE_TIMEOUT_MS / 1000} s`)),
      PARSE_TIMEOUT_MS,
    );
    const exited = (): void => reject(new Error('the reading thread ended'));
    thread.on('message', resolve).on('error', reject).on('exit', exited);
    thread.postMessage(source);
    try {
      return await promise;
    } catch (error) {
      await end();
      return { ok: false, errors: [unreadable(source.file, error)] };
    } finally {
      clearTimeout(timer);
      thread.off('message', resolve).off('error', reject).off('exit', exited);
      idle = setTimeout(() => void end(), IDLE_MS);
      idle.unref();
    }
  };

  return {
    async parse(source) {
      if (source.content.length <= INLINE_BYTES) return parsePolicyDocuments(source);
      const result = last.then(() => parseInThread(source));
      last = result;
      return await result;
    },
    stop: end,
  };
}

function unreadable(file: string, error: unknown): DocumentError {
  return {
    ...{ file, line: 1, column: 1, field: '' },
    message: `the file could not be read: ${error instanceof Error ? error.message : String(error)}`,
    expected: 'WorkloadPolicies of ordinary size',
    remedy: 'split the file',
  };
}
