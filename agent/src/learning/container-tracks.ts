import type { ExecOrigin } from '@runtime-enforcer/api/exec-origin';
import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import { MAX_LEARNED_PATHS } from '@runtime-enforcer/api/limits';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { AgentCounters } from '../metrics.ts';
import { podKey } from './pod-identities.ts';

/** Containers of which something waits, or that are followed: those of a node, and some that ended. */
const MAX_TRACKS = 8_192;
/** Paths of one container that wait. */
const MAX_WAITING = 4 * MAX_LEARNED_PATHS;
/** Characters of all paths that wait: while the API is away, tenants go on. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** Execs of one path since it was settled last. */
export interface LearnedExecs {
  readonly origins: Iterable<ExecOrigin>;
  readonly count: number;
  /** Unix epoch, in milliseconds. */
  readonly firstMs: number;
  readonly lastMs: number;
}

/** A container that is learned, or whose pod is still to be found out about. */
export interface Track {
  readonly containerId: string;
  readonly containerName: string;
  readonly namespace: string;
  readonly podName: string;
  readonly podUid: string;
  readonly podKey: string;
  /** By path: what has not reached a proposal yet. */
  readonly waiting: ReadonlyMap<ExecutablePath, LearnedExecs>;
  /** Its pod cannot be learned, for as long as it lives. */
  readonly refused: boolean;
}

interface OwnTrack extends Track {
  waiting: Map<ExecutablePath, LearnedExecs>;
  refused: boolean;
  proposal: string | undefined;
}

/** What waits, by container, within bounds. */
export interface ContainerTracks {
  /** Undefined: there are too many. */
  of(container: BoundContainer): Track | undefined;
  /** False: nothing waits because of it; what is beyond the bounds is counted. */
  add(
    track: Track,
    path: ExecutablePath,
    execs: Omit<LearnedExecs, 'origins'> & { readonly origin: ExecOrigin },
  ): boolean;
  drop(track: Track, path: ExecutablePath): void;
  clear(track: Track): void;
  refuse(track: Track): void;
  /** Notes the proposal, as `namespace/name`, that the container is learned into. */
  assign(track: Track, proposal: string): void;
  ofNamespace(namespace: string): Track[];
  ofPod(podKey: string): Track[];
  ofProposal(proposal: string): Track[];
  all(): Iterable<Track>;
  /** Forgets the containers that ended and of which nothing waits. */
  retain(presentIds: ReadonlySet<string>): void;
  keysInUse(): { readonly pods: ReadonlySet<string>; readonly proposals: ReadonlySet<string> };
  readonly size: number;
  /** Paths that wait, over all containers. */
  readonly waiting: number;
}

export function createContainerTracks({ counters }: { readonly counters: AgentCounters }): ContainerTracks {
  const tracks = new Map<string, OwnTrack>();
  const byProposal = new Map<string, Set<OwnTrack>>();
  let characters = 0;
  let waiting = 0;

  const own = ({ containerId }: Track): OwnTrack | undefined => tracks.get(containerId);
  const drop = (track: OwnTrack | undefined, path: ExecutablePath): void => {
    if (track?.waiting.delete(path) !== true) return;
    characters -= path.length;
    waiting--;
  };
  const clear = (track: OwnTrack | undefined): void => {
    for (const path of track?.waiting.keys() ?? []) drop(track, path);
  };
  const leave = (track: OwnTrack): void => {
    if (track.proposal === undefined) return;
    const others = byProposal.get(track.proposal);
    others?.delete(track);
    if (others?.size === 0) byProposal.delete(track.proposal);
    track.proposal = undefined;
  };
  const where = (wanted: (track: OwnTrack) => boolean): Track[] => [...tracks.values()].filter(wanted);

  return {
    of(container) {
      const { containerId, containerName, namespace, podName, podUid } = container;
      const known = tracks.get(containerId);
      if (known !== undefined) return known;
      if (tracks.size >= MAX_TRACKS) return undefined;
      const track: OwnTrack = {
        ...{ containerId, containerName, namespace, podName, podUid },
        podKey: podKey(container),
        ...{ waiting: new Map<ExecutablePath, LearnedExecs>(), refused: false, proposal: undefined },
      };
      tracks.set(containerId, track);
      return track;
    },
    add(given, path, { origin, count, firstMs, lastMs }) {
      const track = own(given);
      if (track === undefined || track.refused) return false;
      const known = track.waiting.get(path);
      if (known === undefined) {
        if (track.waiting.size >= MAX_WAITING || characters + path.length > MAX_CHARACTERS) {
          counters.add('learned_paths_lost');
          return false;
        }
        characters += path.length;
        waiting++;
      }
      track.waiting.set(path, {
        origins: known === undefined ? [origin] : new Set([...known.origins, origin]),
        count: (known?.count ?? 0) + count,
        firstMs: Math.min(known?.firstMs ?? firstMs, firstMs),
        lastMs: Math.max(known?.lastMs ?? lastMs, lastMs),
      });
      return true;
    },
    drop: (track, path) => drop(own(track), path),
    clear: (track) => clear(own(track)),
    refuse(given) {
      const track = own(given);
      if (track === undefined || track.refused) return;
      counters.add('learned_workloads_refused');
      track.refused = true;
      clear(track);
      leave(track);
    },
    assign(given, proposal) {
      const track = own(given);
      if (track === undefined || track.proposal === proposal) return;
      leave(track);
      track.proposal = proposal;
      const others = byProposal.get(proposal) ?? new Set<OwnTrack>();
      byProposal.set(proposal, others.add(track));
    },
    ofNamespace: (namespace) => where((track) => track.namespace === namespace),
    ofPod: (key) => where((track) => track.podKey === key),
    ofProposal: (proposal) => [...(byProposal.get(proposal) ?? [])],
    all: () => tracks.values(),
    retain(presentIds) {
      for (const [containerId, track] of tracks) {
        if (presentIds.has(containerId) || track.waiting.size > 0) continue;
        leave(track);
        tracks.delete(containerId);
      }
    },
    keysInUse: () => ({
      pods: new Set([...tracks.values()].map((track) => track.podKey)),
      proposals: new Set(byProposal.keys()),
    }),
    get size() {
      return tracks.size;
    },
    get waiting() {
      return waiting;
    },
  };
}
