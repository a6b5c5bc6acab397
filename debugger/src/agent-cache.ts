import type { AgentClient } from '@runtime-enforcer/rpc/agent-client';
import { encodedBytesAtMost } from '@runtime-enforcer/rpc/page-size';
import type { ReportedBinding, ReportedPod } from '@runtime-enforcer/rpc/reported';
import { describeError } from '@runtime-enforcer/telemetry/error-text';

/** For all that one agent tells. */
export const ANSWER_MS = 30_000;
/** A node that is full has a hundredth of it. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** Nothing that Kubernetes names is longer; what a runtime tells can be. */
const MAX_TEXT_CHARACTERS = 512;

/** What an agent knows, and what the kernel of its node holds. */
export interface AgentCache {
  readonly pods: readonly ReportedPod[];
  /** A sentence where the agent cannot tell. */
  readonly bindings: readonly ReportedBinding[] | string;
}

/**
 * Asks an agent for everything. What a broken or hostile agent could do with its answer is bounded: its time, its size
 * and the length of each text.
 *
 * @param client is closed afterwards, and as soon as the signal aborts
 * @throws Error with the reason why there is no whole answer
 */
export async function readAgentCache(
  client: Pick<AgentClient, 'listPods' | 'listBindings' | 'close'>,
  { answerMs, signal }: { readonly answerMs: number; readonly signal: AbortSignal },
): Promise<AgentCache> {
  const late = AbortSignal.timeout(answerMs);
  const ended = AbortSignal.any([late, signal]);
  const close = (): void => client.close();
  ended.addEventListener('abort', close);
  try {
    // First the kernel: whatever starts in between is then known to the agent, and no stray.
    const room = answerRoom();
    const bindings = await taken(client.listBindings(), room).catch((error: unknown) => {
      if (ended.aborted) throw error;
      return describeError(error);
    });
    const pods = (await taken(client.listPods(), room)).map(cutTexts);
    return { pods, bindings };
  } catch (error) {
    if (late.aborted) throw new Error(`no whole answer within ${answerMs} ms`, { cause: error });
    throw error;
  } finally {
    ended.removeEventListener('abort', close);
    client.close();
  }
}

interface AnswerRoom {
  bytes: number;
}

function answerRoom(): AnswerRoom {
  return { bytes: MAX_ANSWER_BYTES };
}

async function taken<T>(entries: AsyncIterable<T>, room: AnswerRoom): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const entry of entries) {
    room.bytes -= encodedBytesAtMost(entry);
    if (room.bytes < 0) throw new Error(`it tells more than ${MAX_ANSWER_BYTES} bytes, which no node has`);
    all.push(entry);
  }
  return all;
}

function cutTexts(pod: ReportedPod): ReportedPod {
  return {
    ...pod,
    ...{ uid: cut(pod.uid), name: cut(pod.name), namespace: cut(pod.namespace) },
    ...{ workloadName: cut(pod.workloadName), workloadKind: cut(pod.workloadKind) },
    labels: new Map(Array.from(pod.labels, ([key, value]) => [cut(key), cut(value)])),
    containers: pod.containers.map((container) => ({
      ...container,
      ...{ id: cut(container.id), name: cut(container.name) },
      ...{ policyName: cut(container.policyName), image: cut(container.image) },
    })),
  };
}

function cut(text: string): string {
  return text.length <= MAX_TEXT_CHARACTERS ? text : `${text.slice(0, MAX_TEXT_CHARACTERS)}…`;
}
