import type { ExecOrigin } from '@runtime-enforcer/api/exec-origin';
import { executablePathFromBytes, type ExecutablePath } from '@runtime-enforcer/api/executable-path';
import { learnedOrigin } from '@runtime-enforcer/api/hook-command';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { isDnsLabel } from '@runtime-enforcer/api/kubernetes-name';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { proposalName } from '@runtime-enforcer/api/workload';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { LabelSelector } from '@runtime-enforcer/kube/label-selector';
import type { ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import type { BoundContainer } from '../containers/bound-container.ts';
import { nextTurn } from '../event-loop.ts';
import type { RunningProgram } from '../containers/running-programs.ts';
import type { RecordKey } from '../kernel/enforcer.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import type { CumulativeLog } from '../violations/cumulative-log.ts';
import { createContainerTracks, type LearnedExecs, type Track } from './container-tracks.ts';
import { createLearningNamespaces } from './learning-namespaces.ts';
import type { Learner } from './learner.ts';
import { createObservationBook, type ProposalName } from './observation-book.ts';
import { createPodIdentities } from './pod-identities.ts';
import { createPromotionWatch } from './promotion-watch.ts';
import { createProposalWriter, type WriterTimings } from './proposal-writer.ts';
import { createRefusalLog } from './refusal-log.ts';
import { createRequestPace } from './request-pace.ts';
import { createWorkloadIdentities, type PodIdentity } from './workload-identity.ts';

/** Reads of pods and their owners: an agent that starts finds all pods of its node at once. */
const LOOKUPS = { perSecond: 5, burst: 50 };
/** Kernel counts that are followed, over all containers, and their paths. */
const MAX_FOLLOWED = 50_000;
const MAX_FOLLOWED_CHARACTERS = 8 * 1024 * 1024;
/** How long settling may hold other work up. */
const TURN_MS = 4;

export interface LearningState {
  /** Containers that something is known of. */
  readonly containers: number;
  /** Paths that have not reached a proposal, or been refused, yet. */
  readonly waiting: number;
  readonly followed: number;
  readonly observations: number;
}

/** Turns what containers without a policy start into proposals of the API. */
export interface ClusterLearner extends Learner {
  /** Begins to follow namespaces and proposals. Does not wait for the API. */
  start(): Promise<void>;
  state(): LearningState;
}

interface Followed {
  readonly track: Track;
  readonly path: ExecutablePath;
  readonly origin: ExecOrigin;
  count: bigint;
}

/**
 * To be started when policies are known: until then `isPromoted` would answer for none.
 */
export function createClusterLearner(options: {
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly selector: LabelSelector;
  /** Whether the workload has its policy: one of the proposal's name, or made from it. */
  readonly isPromoted: (namespace: string, proposalName: string) => boolean;
  readonly observations: CumulativeLog<NodeObservation>;
  /** The containers of this node. */
  readonly containers: () => Iterable<BoundContainer>;
  /** What runs in a container now. */
  readonly readRunning: (container: BoundContainer) => Promise<readonly RunningProgram[]>;
  readonly log: Logger;
  readonly counters: AgentCounters;
  /** Unix epoch, in milliseconds. */
  readonly now?: () => number;
  readonly timings?: {
    readonly writer?: Partial<WriterTimings>;
    readonly watches?: Partial<ReflectorTimings>;
  };
}): ClusterLearner {
  const { client, nodeName, selector, isPromoted, containers, readRunning, log, counters } = options;
  const { now = Date.now, timings = {} } = options;
  const tracks = createContainerTracks({ counters });
  const followed = new Map<RecordKey, Followed>();
  let followedCharacters = 0;
  /** By `namespace/name`: the proposals of which this node has told observations. */
  const observed = new Map<string, ProposalName>();
  /** What is to be settled: paths that came, or all that waits. A tenant's new paths must not be looked at again and again. */
  const dirty = new Map<Track, Set<ExecutablePath> | 'all'>();
  const snapshots = new Set<string>();
  let ready = false;
  let stopped = false;
  let turnTaken = false;
  let reading: Promise<void> = Promise.resolve();

  const refusals = createRefusalLog(log);
  const onTrouble = (what: string) => (error: unknown) => {
    counters.add('learning_lookup_failures');
    refusals.trouble(what, error);
  };
  const book = createObservationBook({ log: options.observations, nodeName });
  const namespaces = createLearningNamespaces({
    ...{ client, selector, timings: timings.watches ?? {}, onTrouble: onTrouble('namespaces') },
    onChange(namespace, state) {
      for (const track of tracks.ofNamespace(namespace)) settleLater(track);
      if (state === 'selected')
        for (const each of containers()) if (each.namespace === namespace) snapshot(each);
    },
  });
  const promotions = createPromotionWatch({
    ...{ client, timings: timings.watches ?? {}, onTrouble: onTrouble('proposals marked for promotion') },
    onChange: (key) => writer.promotionChanged(key),
  });
  const pods = createPodIdentities({
    identities: createWorkloadIdentities({ client, pace: createRequestPace(LOOKUPS) }),
    onIdentified: (key) => settleAll(tracks.ofPod(key)),
    onFailure: onTrouble('pods and their owners'),
  });
  const writer = createProposalWriter({
    ...{ client, log, counters, timings: timings.writer ?? {} },
    isStopped: (namespace, name) =>
      isPromoted(namespace, name) || promotions.isMarked(`${namespace}/${name}`),
    onSettled: (key) => settleAll(tracks.ofProposal(key)),
  });

  const takeTurn = (): void => {
    if (!ready || stopped || turnTaken) return;
    turnTaken = true;
    void nextTurn().then(settleDirty);
  };
  const settleLater = (track: Track): void => {
    dirty.set(track, 'all');
    takeTurn();
  };
  const settlePathLater = (track: Track, path: ExecutablePath): void => {
    const paths = dirty.get(track);
    if (paths === undefined) dirty.set(track, new Set([path]));
    else if (paths !== 'all') paths.add(path);
    takeTurn();
  };
  const settleAll = (some: Iterable<Track>): void => {
    for (const track of some) settleLater(track);
  };
  const settleDirty = (): void => {
    turnTaken = false;
    if (stopped) return;
    const endMs = performance.now() + TURN_MS;
    for (const [track, paths] of dirty) {
      dirty.delete(track);
      settle(track, paths);
      if (performance.now() < endMs) continue;
      if (dirty.size > 0) takeTurn();
      return;
    }
  };

  const settle = (track: Track, paths: Iterable<ExecutablePath> | 'all'): void => {
    const state = namespaces.state(track.namespace);
    if (state === 'other') tracks.clear(track);
    if (state !== 'selected' || track.waiting.size === 0) return;
    const identity = pods.identity(track);
    if (identity === undefined) return;
    const target = targetOf(track, identity);
    if (target === undefined) {
      tracks.refuse(track);
      return;
    }
    for (const path of paths === 'all' ? track.waiting.keys() : paths) {
      const execs = track.waiting.get(path);
      if (execs !== undefined) settlePath(track, target, path, execs);
    }
  };

  const targetOf = (track: Track, identity: PodIdentity): Target | undefined => {
    if (identity.kind === 'refused') {
      refusals.refused(track, identity);
      return undefined;
    }
    const name = proposalName(identity.workload);
    if (!name.ok) return undefined;
    tracks.assign(track, `${track.namespace}/${name.value}`);
    return { name: name.value, ...identity };
  };

  const settlePath = (track: Track, target: Target, path: ExecutablePath, execs: LearnedExecs): void => {
    const { containerName, podName, namespace } = track;
    const learned = { containerName, executablePath: path };
    const offer = writer.offer(target.name, target.workload, learned);
    if (offer === 'waiting') return;
    tracks.drop(track, path);
    if (offer === 'refused') counters.add('learned_paths_refused');
    if (offer !== 'listed') return;
    const proposal = { namespace, name: target.name };
    const commands = target.commands.get(containerName) ?? [];
    const origins = new Set([...execs.origins].map((origin) => learnedOrigin(origin, path, commands)));
    const { count, firstMs, lastMs } = execs;
    observed.set(`${namespace}/${target.name}`, proposal);
    if (!book.add(proposal, learned, { count, firstMs, lastMs, origins: [...origins], podName })) {
      counters.add('observations_refused');
    }
  };

  const isLearned = ({ labels, containerName }: BoundContainer): boolean =>
    !labels.has(POLICY_LABEL) && isDnsLabel(containerName);

  const take = (
    container: BoundContainer,
    bytes: Uint8Array,
    execs: Omit<LearnedExecs, 'origins'> & { readonly origin: ExecOrigin },
  ): { readonly track: Track; readonly path: ExecutablePath } | undefined => {
    if (!isLearned(container)) return undefined;
    const parsed = executablePathFromBytes(bytes);
    const track = parsed.ok ? tracks.of(container) : undefined;
    if (!parsed.ok || track === undefined) {
      counters.add('learned_paths_refused');
      return undefined;
    }
    if (tracks.add(track, parsed.value, execs)) settlePathLater(track, parsed.value);
    return track.refused ? undefined : { track, path: parsed.value };
  };

  const follow = (key: RecordKey, given: Omit<Followed, 'count'>): void => {
    const known = followed.get(key);
    if (known !== undefined) {
      known.count = 1n;
      return;
    }
    if (followed.size >= MAX_FOLLOWED) return;
    if (followedCharacters + given.path.length > MAX_FOLLOWED_CHARACTERS) return;
    followedCharacters += given.path.length;
    followed.set(key, { ...given, count: 1n });
  };

  /** What runs in a container that is to be learned from now on, or that the agent before had begun to learn. */
  const snapshot = (container: BoundContainer): void => {
    const { containerId, state, namespace } = container;
    if (state !== 'learning' || !isLearned(container) || snapshots.has(containerId)) return;
    if (namespaces.state(namespace) !== 'selected') return;
    snapshots.add(containerId);
    reading = reading.then(async () => {
      if (stopped) return;
      try {
        learner.running(container, await readRunning(container));
      } catch (error) {
        const { podName, containerName } = container;
        log.warn(
          { err: error, namespace, podName, containerName },
          'what runs in a container could not be read',
        );
      }
    });
  };

  /** What ended in a place that the API knows nothing of will find no proposal. */
  const forgetElsewhere = (presentIds: ReadonlySet<string>): void => {
    for (const track of tracks.all()) {
      if (presentIds.has(track.containerId) || namespaces.state(track.namespace) === 'selected') continue;
      counters.add('learned_paths_lost', track.waiting.size);
      tracks.clear(track);
    }
  };

  const learner: ClusterLearner = {
    async start() {
      namespaces.start();
      promotions.start();
      pods.start();
      writer.start();
      book.start();
      void Promise.all([namespaces.synced, promotions.synced]).then(() => {
        ready = true;
        settleAll(tracks.all());
      });
      await Promise.resolve();
    },
    events(events) {
      for (const { container, reason, key, timeMs, origin, path } of events) {
        counters.add('events_learned');
        if (container === undefined) {
          counters.add('events_without_container');
        } else if (reason !== undefined && reason !== 'Unlisted') {
          counters.add('learned_paths_refused');
        } else {
          const taken = take(container, path, { origin, count: 1, firstMs: timeMs, lastMs: timeMs });
          if (taken !== undefined) follow(key, { ...taken, origin });
        }
      }
    },
    running(container, programs) {
      const timeMs = now();
      for (const { path, kind, otherMountNamespace } of programs) {
        if (kind !== 'file' || otherMountNamespace) continue;
        take(container, path, { origin: 'snapshot', count: 1, firstMs: timeMs, lastMs: timeMs });
      }
    },
    counts(seen) {
      for (const { key, container, mode, count, firstMs, lastMs } of seen) {
        if (mode !== undefined) continue;
        const known = followed.get(key);
        if (known === undefined) {
          // Learned by the agent before: only the program itself tells its path now.
          if (container !== undefined) snapshot(container);
          continue;
        }
        if (count === known.count) continue;
        const more = Number(count > known.count ? count - known.count : count);
        known.count = count;
        const { track, path, origin } = known;
        if (tracks.add(track, path, { origin, count: more, firstMs, lastMs })) settlePathLater(track, path);
      }
    },
    counted(presentIds) {
      for (const [key, { track, path }] of followed) {
        if (presentIds.has(track.containerId) && !track.refused) continue;
        followed.delete(key);
        followedCharacters -= path.length;
      }
      for (const containerId of snapshots) if (!presentIds.has(containerId)) snapshots.delete(containerId);
      if (ready) forgetElsewhere(presentIds);
      tracks.retain(presentIds);
      const inUse = tracks.keysInUse();
      pods.retain(inUse.pods);
      writer.retain(inUse.proposals);
      refusals.retain(inUse.pods);
      for (const [key, proposal] of observed) {
        if (inUse.proposals.has(key)) continue;
        observed.delete(key);
        book.remove(proposal);
      }
    },
    state: () => ({
      containers: tracks.size,
      waiting: tracks.waiting,
      followed: followed.size,
      observations: book.size,
    }),
    async stop() {
      stopped = true;
      await Promise.all([namespaces.stop(), promotions.stop(), pods.stop(), reading]);
      if (ready) for (const [track, paths] of dirty) settle(track, paths);
      await writer.stop();
      // What is not listed now never will be.
      for (const track of tracks.all()) settle(track, 'all');
      counters.add('learned_paths_lost', tracks.waiting);
      book.stop();
    },
  };
  return learner;
}

type Target = Extract<PodIdentity, { kind: 'workload' }> & { readonly name: string };
