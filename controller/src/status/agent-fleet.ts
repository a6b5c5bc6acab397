import type { PolicyFacts } from '@runtime-enforcer/api/node-status';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import { PODS } from '@runtime-enforcer/kube/resource-path';
import type { AgentClient } from '@runtime-enforcer/rpc/agent-client';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import { type AgentPod, agentPodOf } from './agent-pod.ts';
import { type AgentStream, agentStream, type EntryIntake } from './agent-stream.ts';
import { policyReports } from './policy-reports.ts';

/** Agents that are asked for the first time at once: handshakes and first listings of a thousand would starve each other. */
const FIRST_ASKED_AT_ONCE = 64;
/** How long agents have for their first answer; who has none then is told to be missing, and holds up no other. */
const FIRST_ANSWER_MS = 2_000;

/** All agents of the cluster, each read by a stream of its own. */
export interface AgentFleet {
  start(): void;
  stop(): Promise<void>;
  /** Resolved when the pods of agents are known. */
  readonly synced: Promise<void>;
  nodes(): FleetNodes;
  /** What agents say, or said before they fell silent, of a policy; by their pods. */
  reportsOf(policy: string): ReadonlyMap<AgentPod, PolicyFacts>;
  /** Why nothing is known of a node. */
  silence(agent: AgentStream | undefined): string;
  /** Whether every agent that can be asked has reported, or did not answer in time. */
  isSettled(): boolean;
  /** Tells every agent what is stored by now. */
  acknowledge(): Promise<void>;
  counts(): Readonly<Record<AgentState, number>>;
}

/** The nodes, and which agent speaks for each. */
export interface FleetNodes {
  readonly byName: ReadonlyMap<string, AgentStream | undefined>;
  /** Nodes that are known and enforce what they are told: nearly all, so that nothing but a policy's state is asked of them. */
  readonly inOrder: readonly { readonly nodeName: string; readonly pod: AgentPod }[];
  readonly others: readonly { readonly nodeName: string; readonly agent: AgentStream | undefined }[];
}

export type AgentState = 'reporting' | 'silent';

export interface AgentFleetOptions {
  readonly client: ApiClient;
  /** Of the agents' pods. */
  readonly namespace: string;
  readonly selector: string;
  /** Opens a client for one agent; absent: agents are not asked. */
  readonly connect?: (pod: AgentPod, address: string) => AgentClient;
  readonly intake: EntryIntake;
  readonly onChange: (policies: Iterable<string> | 'all') => void;
  readonly log: Logger;
  readonly timings?: Partial<ReflectorTimings>;
}

/** See {@link AgentFleet}. */
export function agentFleet(options: AgentFleetOptions): AgentFleet {
  const { client, namespace, selector, connect, intake, onChange, log, timings = {} } = options;
  const pods = objectStore<AgentPod>({ transform: agentPodOf });
  /** By the pod's uid. */
  const streams = new Map<string, AgentStream>();
  const ending = new Set<Promise<void>>();
  /** Streams that wait for their start, and those whose first answer is waited for. */
  const queued = new Set<AgentStream>();
  const asked = new Map<AgentStream, NodeJS.Timeout>();
  let known: FleetNodes | undefined;
  const reports = policyReports();

  const watch = reflector({
    client,
    resource: PODS,
    namespace,
    labelSelector: selector,
    store: pods,
    timings,
    onChange: ({ type, value, ...change }) => {
      const isReplaced = 'previous' in change && change.previous.address !== value.address;
      if (type === 'deleted' || isReplaced) end(value.uid);
      if (type !== 'deleted') begin(value);
      changed('all');
    },
    onTrouble: (err, waitMs) => log.warn({ err, waitMs }, 'the pods of agents cannot be followed now'),
  });

  function fill(): void {
    for (const stream of queued) {
      if (asked.size >= FIRST_ASKED_AT_ONCE) return;
      queued.delete(stream);
      asked.set(
        stream,
        setTimeout(() => answered(stream), FIRST_ANSWER_MS),
      );
      stream.start();
    }
  }

  function answered(stream: AgentStream): void {
    clearTimeout(asked.get(stream));
    if (asked.delete(stream)) fill();
  }

  function changed(policies: Iterable<string> | 'all'): void {
    if (policies === 'all') known = undefined;
    onChange(policies);
  }

  function begin(pod: AgentPod): void {
    const { address, uid } = pod;
    if (address === undefined || connect === undefined || streams.has(uid)) return;
    const stream: AgentStream = agentStream({
      pod,
      client: connect(pod, address),
      intake,
      onChange(policies) {
        if (stream.isReporting() || stream.hasFailed()) answered(stream);
        changed(policies);
      },
      reports,
      log,
    });
    streams.set(uid, stream);
    queued.add(stream);
    fill();
  }

  function end(uid: string): void {
    const stream = streams.get(uid);
    if (stream === undefined) return;
    streams.delete(uid);
    queued.delete(stream);
    answered(stream);
    const ended = stream.stop().finally(() => ending.delete(ended));
    ending.add(ended);
  }

  /** While one agent takes the place of another, whoever reports speaks for the node; of two, the newer. */
  function speakers(): Map<string, AgentStream | undefined> {
    const found = new Map<string, AgentStream | undefined>();
    for (const pod of pods.values()) {
      const { nodeName, uid } = pod;
      const stream = streams.get(uid);
      const other = found.get(nodeName);
      const isBetter = other === undefined || (stream !== undefined && speaksBefore(stream, other));
      if (!found.has(nodeName) || isBetter) found.set(nodeName, stream ?? other);
    }
    return found;
  }

  function nodes(): FleetNodes {
    const byName = speakers();
    const inOrder: { nodeName: string; pod: AgentPod }[] = [];
    const others: { nodeName: string; agent: AgentStream | undefined }[] = [];
    for (const [nodeName, agent] of byName) {
      if (agent?.isInOrder() === true) inOrder.push({ nodeName, pod: agent.pod });
      else others.push({ nodeName, agent });
    }
    return { byName, inOrder, others };
  }

  return {
    start: () => watch.start(),
    async stop() {
      await watch.stop();
      for (const uid of [...streams.keys()]) end(uid);
      await Promise.all(ending);
    },
    synced: watch.synced,
    nodes: () => (known ??= nodes()),
    reportsOf: (policy) => reports.of(policy),
    silence: (agent) => agent?.silence() ?? silentWithoutAgent(connect !== undefined),
    isSettled: () => queued.size === 0 && asked.size === 0,
    async acknowledge() {
      await Promise.all([...streams.values()].map(async (stream) => await stream.acknowledge()));
    },
    counts() {
      const counts = { reporting: 0, silent: 0 };
      for (const pod of pods.values()) {
        counts[streams.get(pod.uid)?.isReporting() === true ? 'reporting' : 'silent']++;
      }
      return counts;
    },
  };
}

function silentWithoutAgent(isAsked: boolean): string {
  return isAsked
    ? 'No agent client available: no agent runs on the node'
    : 'No agent client available: the controller runs without certificates for agents';
}

function speaksBefore(one: AgentStream, other: AgentStream): boolean {
  if (one.isReporting() !== other.isReporting()) return one.isReporting();
  if (one.pod.isDeleting !== other.pod.isDeleting) return other.pod.isDeleting;
  return one.pod.createdAt > other.pod.createdAt;
}
