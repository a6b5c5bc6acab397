import { EXEC_ORIGINS } from '@runtime-enforcer/api/exec-origin';
import type { Parsed } from '@runtime-enforcer/api/field-error';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { mapped, object, parseWith, text, type Check } from '@runtime-enforcer/api/schema';
import { observation } from '@runtime-enforcer/api/workload-policy-proposal';
import {
  timestampFromWire,
  timestampToWire,
  wireText,
  type WireLong,
  type WireTimestamp,
} from './wire-values.ts';

/** `Observation` of proto/agent.proto. */
export interface WireObservation {
  readonly namespace: string;
  readonly proposal: string;
  readonly containerName: string;
  readonly executablePath: string;
  readonly count: WireLong;
  readonly firstSeen: WireTimestamp | null;
  readonly lastSeen: WireTimestamp | null;
  readonly origins: readonly string[];
  readonly pods: readonly string[];
  readonly nodes: readonly string[];
}

const objectName = text({ max: 253 });

const nodeObservation: Check<NodeObservation> = mapped(
  object({ namespace: objectName, proposal: objectName, observation }, {}),
  ({ namespace, proposal, observation: observed }) => ({ namespace, proposal, ...observed }),
);

export function observationToWire(observed: NodeObservation): WireObservation {
  return {
    namespace: wireText(observed.namespace),
    proposal: wireText(observed.proposal),
    containerName: wireText(observed.containerName),
    executablePath: observed.executablePath,
    count: observed.count,
    firstSeen: timestampToWire(observed.firstSeen),
    lastSeen: timestampToWire(observed.lastSeen),
    origins: observed.origins,
    pods: observed.pods.map(wireText),
    nodes: observed.nodes.map(wireText),
  };
}

/** What an agent sent, held to the bounds that `api/` sets for an observation. */
export function observationFromWire(wire: WireObservation): Parsed<NodeObservation> {
  const { namespace, proposal, containerName, executablePath, pods, nodes } = wire;
  return parseWith(nodeObservation, {
    namespace,
    proposal,
    observation: {
      containerName,
      executablePath,
      count: Number(wire.count),
      firstSeen: timestampFromWire(wire.firstSeen),
      lastSeen: timestampFromWire(wire.lastSeen),
      origins: wire.origins.filter((origin) => EXEC_ORIGINS.some((known) => known === origin)),
      pods,
      nodes,
    },
  });
}
