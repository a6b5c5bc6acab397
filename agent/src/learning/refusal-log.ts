import type { Logger } from '../nri/handlers.ts';
import type { Track } from './container-tracks.ts';
import type { PodIdentity } from './workload-identity.ts';

/** Kinds of controllers that are told once each; tenants can make up kinds without end. */
const MAX_KINDS = 100;
/** How often a trouble that stays the same is told. */
const REPEAT_MS = 10 * 60_000;

/** Tells why pods are not learned, and what keeps learning from the API: each once, whatever happens how often. */
export interface RefusalLog {
  refused(track: Track, identity: Extract<PodIdentity, { kind: 'refused' }>): void;
  trouble(what: string, error: unknown): void;
  /** Forgets the other pods. */
  retain(pods: ReadonlySet<string>): void;
}

export function createRefusalLog(log: Logger): RefusalLog {
  const told = new Set<string>();
  const kinds = new Set<string>();
  const troubles = new Map<string, { readonly text: string; readonly atMs: number }>();
  return {
    refused({ podKey, namespace, podName }, { reason, detail }) {
      if (reason === 'unsupported') {
        if (kinds.has(detail) || kinds.size >= MAX_KINDS) return;
        kinds.add(detail);
        log.warn(
          { controller: detail, namespace, podName },
          'pods of this kind of controller are not learned: write their policies by hand',
        );
        return;
      }
      if (told.has(podKey)) return;
      told.add(podKey);
      if (reason === 'forged') log.warn({ namespace, podName, problem: detail }, 'pod is not learned');
      else log.debug({ namespace, podName, reason, problem: detail }, 'pod is not learned');
    },
    trouble(what, error) {
      const text = error instanceof Error ? error.message : String(error);
      const known = troubles.get(what);
      const nowMs = performance.now();
      if (known?.text === text && nowMs - known.atMs < REPEAT_MS) return;
      troubles.set(what, { text, atMs: nowMs });
      log.warn({ err: error, what }, 'learning cannot read from the API; trying again');
    },
    retain(pods) {
      for (const key of told) if (!pods.has(key)) told.delete(key);
    },
  };
}
