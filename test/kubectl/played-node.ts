import { examplePath } from '@runtime-enforcer/agent/policies/policy-example';
import { policyDigest } from '@runtime-enforcer/api/policy-digest';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import { knownPolicy, statusOf } from '@runtime-enforcer/controller/status/known-policy';
import { pagedList } from '@runtime-enforcer/kube/paged-list';
import { collectionPath, PODS } from '@runtime-enforcer/kube/resource-path';
import { freePorts } from '../cluster/port.ts';
import { controllerPlace } from '../controller/controller-process.ts';
import { createAgentPod, simulatedAgent } from '../controller/simulated-agents.ts';
import { eventually } from '../runtime/eventually.ts';
import { type LivingCluster, livingCluster } from './living-cluster.ts';

const NODE = 'node-1';
const SEEN_AT = '2026-01-31T12:00:00Z';

/** A cluster with the real controller, and a node whose agent tells what the test has it tell. */
export interface PlayedNode extends LivingCluster {
  /** A Deployment, and what an agent does: a proposal of what it has seen, and the evidence. */
  readonly learned: (name: string, paths: readonly string[]) => Promise<void>;
  /** The name of a running pod of a Deployment. */
  readonly podOf: (name: string) => Promise<string>;
  /** What an agent does: the policy as it is now is in the kernel. @returns once the status says so */
  readonly loaded: (name: string) => Promise<void>;
  /** What an agent does: a container has started what is not on the list. @returns once the status has it */
  readonly violated: (
    policyName: string,
    workload: string,
    executablePath: string,
    action: PolicyMode,
  ) => Promise<void>;
  readonly violationsOf: (name: string) => Promise<ReturnType<typeof statusOf>>;
  /** Waits until no violation is active. */
  readonly cleared: (name: string) => Promise<void>;
}

/** @param namespace of the shell, and of all that the test has the node tell */
export async function playedNode(namespace: string): Promise<PlayedNode> {
  const living = await livingCluster(namespace, [NODE]);
  const { plane, cluster } = living;
  const place = await controllerPlace(plane);
  const [port = 0] = await freePorts(1);
  const agent = await simulatedAgent({
    ...{ authority: plane.credentials.authority, port, index: 1, nodeName: NODE },
  });
  await agent.start();
  await createAgentPod(plane.admin.client, agent);
  const controller = await place.start({ args: [`--wp-status-reconciler-agent-grpc-port=${port}`] });
  await controller.ready();
  await place.installWebhooks(controller);

  async function podOf(name: string): Promise<string> {
    return await eventually(`a pod of ${name} runs`, async () => {
      const { objects } = await pagedList(plane.admin.client, {
        path: collectionPath(PODS, namespace),
        query: { labelSelector: `app=${name}`, fieldSelector: 'status.phase=Running' },
      });
      const alive = objects.filter(({ metadata }) => metadata['deletionTimestamp'] === undefined);
      return alive.at(0)?.metadata.name;
    });
  }

  async function violationsOf(name: string): Promise<ReturnType<typeof statusOf>> {
    const object = await cluster.get(WORKLOAD_POLICIES, name);
    if (object === undefined) throw new Error(`there is no policy ${name}`);
    return statusOf(object);
  }

  return {
    ...living,
    podOf,
    violationsOf,
    async learned(name, paths) {
      await cluster.deployment(name);
      const proposal = `deploy-${name}`;
      const ownerReferences = [{ apiVersion: '', kind: 'Deployment', name, uid: '' }];
      await cluster.proposal(proposal, { app: paths }, { metadata: { ownerReferences } });
      const pods = [await podOf(name)];
      for (const executablePath of paths.map(examplePath)) {
        agent.observations.put(`${proposal} ${executablePath}`, {
          ...{ namespace, proposal, containerName: 'app', executablePath, count: 12 },
          ...{ firstSeen: SEEN_AT, lastSeen: SEEN_AT, origins: ['entrypoint'], pods, nodes: [NODE] },
        });
      }
      agent.changed();
      await eventually('the evidence is in the status', async () => {
        const object = await cluster.get(WORKLOAD_POLICY_PROPOSALS, proposal);
        return JSON.stringify(object?.['status'] ?? {}).includes('"observations"') ? true : undefined;
      });
    },
    async loaded(name) {
      const object = await eventually(
        `there is a policy ${name}`,
        async () => await cluster.get(WORKLOAD_POLICIES, name),
      );
      const { spec, generation } = knownPolicy(object);
      agent.policies.set(`${namespace}/${name}`, {
        ...{ state: 'ready', mode: spec.mode, paths: 3, digest: policyDigest(spec) },
      });
      agent.changed();
      await eventually(`${name} is ready`, async () => {
        const current = await cluster.get(WORKLOAD_POLICIES, name);
        const status = current && statusOf(current);
        return status?.phase === 'Ready' && status.observedGeneration === generation ? true : undefined;
      });
    },
    async violated(policyName, workload, executablePath, action) {
      const now = new Date().toISOString();
      agent.violations.put(`${policyName} ${executablePath} ${action}`, {
        ...{ namespace, policyName, podName: await podOf(workload), containerName: 'app' },
        ...{ executablePath, nodeName: NODE, action, reason: 'Unlisted', origin: 'exec', occurrences: 1 },
        ...{ firstObservedTimestamp: now, lastObservedTimestamp: now },
      });
      agent.changed();
      await eventually(`${executablePath} is in the status`, async () => {
        const { violations } = await violationsOf(policyName);
        return violations.some((each) => each.executablePath === executablePath) ? true : undefined;
      });
    },
    async cleared(name) {
      await eventually(`no violation of ${name} is active`, async () =>
        (await violationsOf(name)).activeViolationCount === 0 ? true : undefined,
      );
    },
    async stop() {
      await place.stop();
      await agent.stop();
      await living.stop();
    },
  };
}
