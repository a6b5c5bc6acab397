import type { ReportedContainer, ReportedPod } from './reported.ts';
import { nameOfNumber, wireText, type WireLong } from './wire-values.ts';

/** `PodView` of proto/agent.proto. */
export interface WirePod {
  readonly meta: {
    readonly id: string;
    readonly name: string;
    readonly namespace: string;
    readonly workloadName: string;
    readonly workloadType: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly omitted: number;
  } | null;
  readonly containers: Readonly<Record<string, WireContainer>>;
}

/** `ContainerMeta` of proto/agent.proto. */
export interface WireContainer {
  readonly id: string;
  readonly name: string;
  readonly cgroupId: WireLong;
  readonly state: number;
  readonly policyName: string;
  readonly listed: boolean;
  readonly image: string;
  readonly pid: number;
  readonly slot: number;
  readonly generation: number;
  readonly mountNamespace: number;
  readonly policyId: number;
  readonly presentCgroupId: WireLong;
}

/** By the numbers of the enum, 0 for unspecified. */
const STATES = ['unknown', 'enforced', 'learning', 'unbound', 'waiting'] as const;

export function podToWire(pod: ReportedPod): WirePod {
  return {
    meta: {
      id: wireText(pod.uid),
      name: wireText(pod.name),
      namespace: wireText(pod.namespace),
      workloadName: wireText(pod.workloadName),
      workloadType: wireText(pod.workloadKind),
      labels: Object.fromEntries(Array.from(pod.labels, (label) => label.map(wireText) as [string, string])),
      omitted: pod.omitted,
    },
    containers: Object.fromEntries(
      pod.containers.map((container) => [wireText(container.id), containerToWire(container)]),
    ),
  };
}

export function podFromWire({ meta, containers }: WirePod): ReportedPod {
  return {
    uid: meta?.id ?? '',
    name: meta?.name ?? '',
    namespace: meta?.namespace ?? '',
    workloadName: meta?.workloadName ?? '',
    workloadKind: meta?.workloadType ?? '',
    labels: new Map(Object.entries(meta?.labels ?? {})),
    containers: Object.values(containers).map(containerFromWire),
    omitted: meta?.omitted ?? 0,
  };
}

function containerToWire(container: ReportedContainer): WireContainer {
  return {
    ...container,
    id: wireText(container.id),
    name: wireText(container.name),
    state: STATES.indexOf(container.state),
    policyName: wireText(container.policyName),
    image: wireText(container.image),
  };
}

function containerFromWire(container: WireContainer): ReportedContainer {
  return {
    ...container,
    cgroupId: BigInt(container.cgroupId),
    state: nameOfNumber(STATES, container.state),
    presentCgroupId: BigInt(container.presentCgroupId),
  };
}
