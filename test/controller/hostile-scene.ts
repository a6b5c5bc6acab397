import { readFile } from 'node:fs/promises';
import { API_VERSION } from '@runtime-enforcer/api/keys';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import type { WorkloadPolicyStatus } from '@runtime-enforcer/api/workload-policy-status';
import { statusOf } from '@runtime-enforcer/controller/status/known-policy';
import { collectionPath } from '@runtime-enforcer/kube/resource-path';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { freePorts } from '../cluster/port.ts';
import { eventually } from '../runtime/eventually.ts';
import { controllerPlace } from './controller-process.ts';
import { encodedReport, type HostileAgent, type HostileWatch, startHostileAgent } from './hostile-agent.ts';
import { objectOf } from './proposals.ts';
import { createAgentPod, createBoundPod, simulatedAgent } from './simulated-agents.ts';

const NAMESPACE = 'shop';
/**
 * How long what an honest agent tells may take to be in the status, whatever another one does: for what changes all the
 * time, a round of the controller waits five seconds.
 */
const TOLD_MS = 12_000;
const MAX_RSS_MIB = 350;

/** A policy with two pods, one of them on the node of the hostile agent. */
export interface HostileNames {
  readonly policy: string;
  readonly nodeName: string;
  readonly pod: string;
  readonly honestPod: string;
}

/** A controller between an honest agent, which is there all the time, and one hostile agent after the other. */
export interface HostileScene {
  readonly plane: ControlPlane;
  readonly honestNode: string;
  /** The hostile agent is asked from now on, until `end`. */
  against(
    play: (watch: HostileWatch, names: HostileNames) => Promise<void>,
    more?: Partial<Parameters<typeof startHostileAgent>[0]>,
  ): Promise<HostileNames>;
  /** How often the hostile agent was asked. */
  watches(): number;
  statusNow(policy: string): Promise<WorkloadPolicyStatus>;
  /** @throws Error where what the honest agent tells is not told in time, or the controller has ended or grown too large */
  unharmed(names: HostileNames): Promise<WorkloadPolicyStatus>;
  /** As `unharmed`, where the newest records may all be the hostile agent's: the count must go on. */
  countsOn(names: HostileNames): Promise<WorkloadPolicyStatus>;
  rssMib(): Promise<number>;
  /** Ends the hostile agent. */
  end(): Promise<void>;
  stop(): Promise<void>;
}

export async function hostileScene(): Promise<HostileScene> {
  const plane = await startControlPlane();
  const { client } = plane.admin;
  const { authority } = plane.credentials;
  await installCustomResources(client);
  await plane.serviceAccount(NAMESPACE, 'default');
  const [port = 0] = await freePorts(1);
  const place = await controllerPlace(plane);
  const honest = await simulatedAgent({ authority, index: 0, port });
  await honest.start();
  await createAgentPod(client, honest);
  const controller = await place.start({
    args: [
      `--wp-status-reconciler-agent-grpc-port=${port}`,
      '--wp-status-reconciler-update-interval=100ms',
      '--log-level=warn',
    ],
  });
  await controller.ready();
  let hostile: HostileAgent | undefined;
  let scenes = 0;
  let told = 0;

  async function statusNow(policy: string): Promise<WorkloadPolicyStatus> {
    const object = await objectOf(client, WORKLOAD_POLICIES, NAMESPACE, policy);
    if (object === undefined) throw new Error(`there is no policy ${policy}`);
    return statusOf(object);
  }

  async function rssMib(): Promise<number> {
    const status = await readFile(`/proc/${controller.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
  }

  async function isTold(
    what: string,
    policy: string,
    is: (status: WorkloadPolicyStatus) => boolean,
  ): Promise<WorkloadPolicyStatus> {
    const ask = async (): Promise<WorkloadPolicyStatus | undefined> => {
      const status = await statusNow(policy);
      return is(status) ? status : undefined;
    };
    const status = await eventually(what, ask, TOLD_MS);
    controller.assertRunning();
    const rss = await rssMib();
    if (!(rss < MAX_RSS_MIB))
      throw new Error(`the controller has ${rss} MiB, of ${MAX_RSS_MIB} that it may have`);
    return status;
  }

  return {
    plane,
    honestNode: honest.nodeName,
    async against(play, more = {}) {
      const index = ++scenes;
      const policy = `web-${index}`;
      await client.request({
        method: 'POST',
        path: collectionPath(WORKLOAD_POLICIES, NAMESPACE),
        body: {
          apiVersion: API_VERSION,
          kind: 'WorkloadPolicy',
          metadata: { name: policy },
          spec: { mode: 'protect', rulesByContainer: { app: { executables: { allowed: ['/app'] } } } },
        },
      });
      const [pod, honestPod] = [`${policy}-hostile`, `${policy}-honest`];
      const names = { policy, nodeName: `node-${index}`, pod, honestPod };
      hostile = await startHostileAgent({
        ...{ authority, index, port, play: async (watch) => await play(watch, names) },
        ...more,
      });
      for (const [name, nodeName] of [
        [pod, names.nodeName],
        [honestPod, honest.nodeName],
      ] as const) {
        await createBoundPod(client, { namespace: NAMESPACE, policy, name, nodeName });
      }
      await createAgentPod(client, hostile);
      return names;
    },
    watches: () => hostile?.watches ?? 0,
    statusNow,
    async unharmed({ policy, honestPod }) {
      const now = new Date().toISOString();
      const executablePath = `/bin/honest-${++told}`;
      honest.violations.put(executablePath, {
        ...{ namespace: NAMESPACE, policyName: policy, podName: honestPod, containerName: 'app' },
        ...{ nodeName: honest.nodeName, action: 'protect', reason: 'Unlisted', occurrences: 1 },
        ...{ executablePath, firstObservedTimestamp: now, lastObservedTimestamp: now },
      });
      return await isTold(`${executablePath} is told`, policy, ({ violations }) =>
        violations.some((each) => each.executablePath === executablePath),
      );
    },
    async countsOn({ policy }) {
      const before = (await statusNow(policy)).violationCount;
      return await isTold('counting goes on', policy, ({ violationCount }) => violationCount > before);
    },
    rssMib,
    async end() {
      await hostile?.stop();
      hostile = undefined;
    },
    async stop() {
      await place.stop();
      await honest.stop();
      await plane.stop();
    },
  };
}

export const nodeState = (nodeName: string) => ({
  ...{ nodeName, agentVersion: '0.1.0', startedAt: { seconds: 1_700_000_000, nanos: 0 }, attachment: 'lsm' },
  ...{ kernel: '6.12', attached: true, override: 'none', runtimeConnected: true, policiesLoaded: true },
});

/** Of the pod on its own node, in the plain form of a message. */
export function hostileViolation(
  { policy, nodeName, pod }: Omit<HostileNames, 'honestPod'>,
  changed: object = {},
): object {
  const time = { seconds: Math.floor(Date.now() / 1_000), nanos: 0 };
  return {
    ...{ timestamp: time, firstObserved: time, podName: pod, containerName: 'app', executablePath: '/bin/x' },
    ...{
      nodeName,
      action: 'protect',
      policyName: `${NAMESPACE}/${policy}`,
      occurrences: 1,
      reason: 'Unlisted',
    },
    ...changed,
  };
}

export function violationPage(violations: readonly object[], first = 1, incarnation = 'i'): object {
  const entries = violations.map((violation, at) => ({
    sequence: first + at,
    violation,
    previousOccurrences: 0,
  }));
  return { cursor: { incarnation, sequence: first + entries.length - 1 }, entries, resync: first === 1 };
}

/** What every agent tells first, so that it is taken for one. */
export function greeting({ nodeName }: HostileNames): Buffer {
  const policies = { cursor: { incarnation: 'p', sequence: 1 }, resync: true, policies: {} };
  return encodedReport({ node: nodeState(nodeName), policies });
}
