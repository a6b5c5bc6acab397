import { isDnsLabel, isDnsSubdomain } from '@runtime-enforcer/api/kubernetes-name';
import { quote } from '@runtime-enforcer/api/field-error';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { eventRecorder } from '@runtime-enforcer/kube/event-recorder';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ContainerNotices } from '../node/runtime-handlers.ts';
import { shownName } from '../node/shown-name.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import type { NodeViolation } from '../violations/node-violation.ts';
import { createEventBudget } from './event-budget.ts';

const COMPONENT = 'runtime-enforcer-agent';
/**
 * Events about violations, and about containers that ran unchecked, are for whoever looks at a pod and wonders; everybody
 * else reads them from the agent. A policy that fits badly makes all pods of a cluster violate it at once, and an agent
 * that comes back finds many containers that did not wait, which the API server must not notice.
 */
const BOUNDED_EVENTS = {
  ofNode: { burst: 8, refillMs: 15_000 },
  ofPod: { burst: 3, refillMs: 60_000 },
};
/** What the API server gives; a static pod's uid is a digest, of which the API server knows nothing. */
const API_UID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Events on pods, for people who wonder what became of their containers. Bounded, and never waited for. */
export interface PodNotices extends ContainerNotices {
  /** A violation of a kind that its container had not committed before. */
  violation(violation: NodeViolation): void;
  counters(): { readonly written: number; readonly suppressed: number; readonly lost: number };
  /** Resolved when all that was noted so far is written or lost. */
  flush(): Promise<void>;
  /** What is not written yet is lost. */
  stop(): Promise<void>;
}

export function createPodNotices(parts: {
  client: ApiClient;
  nodeName: string;
  /** The uid of a pod of this node, by its container. */
  podUid: (containerId: string) => string | undefined;
  log: Logger;
}): PodNotices {
  const { client, nodeName, podUid, log } = parts;
  const recorder = eventRecorder({
    ...{ client, component: COMPONENT, host: nodeName },
    onLost: (note, error) => log.debug({ err: error, reason: note.reason }, 'an event on a pod was lost'),
  });

  const note = (
    pod: { readonly namespace: string; readonly name: string; readonly uid: string },
    reason: string,
    message: string,
  ): void => {
    const { namespace, name, uid } = pod;
    // The runtime's words; no pod of the API can have other names.
    if (!isDnsLabel(namespace) || !isDnsSubdomain(name)) return;
    const subject = { apiVersion: 'v1', kind: 'Pod', namespace, name, ...(API_UID.test(uid) && { uid }) };
    recorder.record({ subject, type: 'Warning', reason, message });
  };
  const ofContainer = ({ namespace, podName: name, podUid: uid }: BoundContainer) => ({
    namespace,
    name,
    uid,
  });

  const hasBudget = createEventBudget(BOUNDED_EVENTS);
  let untold = 0;
  const mayTell = ({ namespace, name }: { readonly namespace: string; readonly name: string }): boolean => {
    const may = hasBudget(`${namespace}/${name}`, performance.now());
    if (!may) untold++;
    return may;
  };

  return {
    refused(pod: NriPodSandbox, container: NriContainer, reason) {
      note(
        pod,
        'ContainerRefused',
        `Container ${shownName(container.name)} was kept from starting: ${reason}.`,
      );
    },
    unenforced(pod: NriPodSandbox, container: NriContainer, reason) {
      const name = shownName(container.name);
      note(
        pod,
        'ContainerUnenforced',
        `Container ${name} starts unchecked because of nriFailopen: ${reason}.`,
      );
    },
    boundLate(container) {
      const pod = ofContainer(container);
      if (container.state !== 'enforced' || !mayTell(pod)) return;
      const name = shownName(container.containerName);
      const message = `Container ${name} ran before it was bound to its policy; it is checked from now on.`;
      note(pod, 'ContainerBoundLate', message);
    },
    waiting(container, problem) {
      const pod = ofContainer(container);
      if (!mayTell(pod)) return;
      note(
        pod,
        'ContainerUnchecked',
        `Container ${shownName(container.containerName)} runs unchecked: ${problem}.`,
      );
    },
    violation({
      namespace,
      podName: name,
      containerName,
      containerId,
      executablePath,
      action,
      policyName,
      overflow,
    }) {
      if (overflow === true) return;
      if (!mayTell({ namespace, name })) return;
      const what = `${quote(executablePath)} in container ${shownName(containerName)}`;
      const by = `is not allowed by policy ${shownName(policyName)}`;
      const pod = { namespace, name, uid: podUid(containerId) ?? '' };
      if (action === 'protect') note(pod, 'ExecutableDenied', `${what} ${by} and was denied.`);
      else note(pod, 'ExecutableNotAllowed', `${what} ${by}; it was not denied.`);
    },
    counters() {
      const { written, suppressed, lost } = recorder.counters();
      return { written, suppressed: suppressed + untold, lost };
    },
    flush: async () => await recorder.flush(),
    stop: async () => await recorder.stop(),
  };
}
