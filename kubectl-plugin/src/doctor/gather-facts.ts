import { GROUP } from '@runtime-enforcer/api/keys';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { type KubeObject, objectKey } from '@runtime-enforcer/kube/kube-object';
import type { Resource } from '@runtime-enforcer/kube/resource-path';
import { findComponents, isReady, nodeOf, PRODUCT_SELECTOR } from '../cluster/components.ts';
import type { Connection } from '../cluster/connection.ts';
import { isMissingKind, listObjects, PODS, POLICIES, policyOf, PROPOSALS } from '../cluster/objects.ts';
import { WORKLOADS } from '../cluster/workloads.ts';
import { reportError } from '../error-text.ts';
import { listAt, numberAt, textAt } from '../output/json-field.ts';
import { podProtections } from '../pod-protection.ts';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { ClusterFacts } from './facts.ts';
import type { Known } from './finding.ts';

const CUSTOM_RESOURCES: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
};
const ADMISSION = { group: 'admissionregistration.k8s.io', version: 'v1' };
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };
const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets' };
const METRICS_PORT = 'metrics';
const METRICS_TIMEOUT_MS = 5_000;
/** An agent's are a hundredth of it. */
const MAX_METRICS_BYTES = 4 * 1024 * 1024;
/** How many agents are asked at once. */
const PARALLEL_AGENTS = 16;

/** Asks for everything; what may not be seen is a fact too. Throws only where the server cannot be reached. */
export async function gatherFacts({ client }: Connection, now: Date): Promise<ClusterFacts> {
  const list = async (resource: Resource, selector?: string): Promise<Known<readonly KubeObject[]>> =>
    await known(async () => await listObjects(client, resource, undefined, selector));
  const [components, customResources, mutating, validating, admissionPolicies, nodes, secrets] =
    await Promise.all([
      known(async () => await findComponents(client)),
      known(async () => {
        const all = await listObjects(client, CUSTOM_RESOURCES, undefined);
        return all.filter((crd) => textAt(crd, 'spec', 'group') === GROUP);
      }),
      list({ ...ADMISSION, plural: 'mutatingwebhookconfigurations' }, PRODUCT_SELECTOR),
      list({ ...ADMISSION, plural: 'validatingwebhookconfigurations' }, PRODUCT_SELECTOR),
      list({ ...ADMISSION, plural: 'validatingadmissionpolicies' }, PRODUCT_SELECTOR),
      list(NODES),
      list(SECRETS, PRODUCT_SELECTOR),
    ]);
  const ofComponent = (name: string): Known<readonly KubeObject[]> =>
    mapKnown(components, (found) => found.find(({ component }) => component === name)?.pods ?? []);
  const agents = ofComponent('agent');
  const [policyObjects, proposals, labelled, workloads] = await Promise.all([
    known(async () => await unlessMissing(async () => await listObjects(client, POLICIES, undefined))),
    known(async () => await unlessMissing(async () => await listObjects(client, PROPOSALS, undefined))),
    list(PODS, POLICY_LABEL),
    known(async () => await listWorkloads(client)),
  ]);
  const unreadablePolicies = new Map<string, string>();
  const policies = mapKnown(policyObjects, (objects) => readable(objects, unreadablePolicies));
  const agentNodes = agents.ok ? new Set(agents.value.filter(isReady).map(nodeOf)) : undefined;
  const byName = new Map(
    (policies.ok ? policies.value : []).map((policy) => [
      `${policy.metadata.namespace}/${policy.metadata.name}`,
      policy,
    ]),
  );
  return {
    nowMs: now.getTime(),
    customResources,
    webhooks: mapKnown(mutating, (one) => [...one, ...(validating.ok ? validating.value : [])]),
    admissionPolicies,
    agents,
    controllers: ofComponent('controller'),
    nodes,
    agentMetrics: await metricsOf(client, agents.ok ? agents.value.filter(isRunning) : []),
    secrets,
    policies,
    unreadablePolicies,
    proposals,
    pods: mapKnown(labelled, (pods) => podProtections({ pods, policies: byName, agentNodes })),
    workloads,
  };
}

async function listWorkloads(client: ApiClient) {
  const lists = await Promise.all(
    WORKLOADS.filter(({ kind }) => kind !== 'ReplicaSet').map(async (resource) =>
      (await listObjects(client, resource, undefined)).map((object) => ({ resource, object })),
    ),
  );
  return lists.flat();
}

/** Through the API server, which reaches every pod; agents without a port of that name serve no metrics. */
async function metricsOf(
  client: ApiClient,
  agents: readonly KubeObject[],
): Promise<ReadonlyMap<string, Known<string>>> {
  const metrics = new Map<string, Known<string>>();
  const waiting = [...agents];
  const worker = async (): Promise<void> => {
    for (let agent = waiting.pop(); agent !== undefined; agent = waiting.pop()) {
      const port = listAt(agent, 'spec', 'containers')
        .flatMap((container) => listAt(container, 'ports'))
        .find((each) => textAt(each, 'name') === METRICS_PORT);
      const { namespace = '', name } = agent.metadata;
      if (port === undefined) {
        metrics.set(objectKey(agent), { ok: false, why: `the pod has no port named ${METRICS_PORT}` });
        continue;
      }
      const pods = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
      const place = `${name}:${numberAt(port, 'containerPort') ?? 0}`;
      const signal = AbortSignal.timeout(METRICS_TIMEOUT_MS);
      const read = async (target: string): Promise<string> =>
        await readText(client, `${pods}/${encodeURIComponent(target)}/proxy/metrics`, signal);
      // An agent of the chart speaks TLS; one that was given no certificates does not.
      const ask = async (): Promise<string> =>
        await read(`https:${place}`).catch(async (error: unknown) => {
          if (signal.aborted) throw error;
          return await read(place);
        });
      metrics.set(objectKey(agent), await answered(ask));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_AGENTS }, worker));
  return metrics;
}

/** What it says is an agent's: it may be endless, in time and in length. */
async function readText(client: ApiClient, path: string, signal: AbortSignal): Promise<string> {
  const body = await client.stream({ path, signal });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_METRICS_BYTES) throw new Error(`they are longer than ${MAX_METRICS_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** What one agent answers: that it does not is no reason to say nothing of the others. */
async function answered(work: () => Promise<string>): Promise<Known<string>> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    if (error instanceof Error && error.name === 'TimeoutError')
      return { ok: false, why: `no whole answer within ${METRICS_TIMEOUT_MS} ms` };
    return {
      ok: false,
      why:
        reportError(error)
          .text.split('\n')[0]
          ?.replace(/^error: /, '') ?? '',
    };
  }
}

function isRunning(pod: KubeObject): boolean {
  return textAt(pod, 'status', 'phase') === 'Running';
}

/** Of a kind that the server does not know there is nothing; the check of the custom resources says why. */
async function unlessMissing(work: () => Promise<readonly KubeObject[]>): Promise<readonly KubeObject[]> {
  try {
    return await work();
  } catch (error) {
    if (isMissingKind(error)) return [];
    throw error;
  }
}

/** @param unreadable gets the rest, with the reason */
function readable(
  objects: readonly KubeObject[],
  unreadable: Map<string, string>,
): readonly WorkloadPolicy[] {
  return objects.flatMap((object) => {
    try {
      return [policyOf(object)];
    } catch (error) {
      unreadable.set(objectKey(object), error instanceof Error ? error.message : String(error));
      return [];
    }
  });
}

async function known<T>(work: () => Promise<T>): Promise<Known<T>> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 401) throw error;
    return { ok: false, why: reportError(error).text.split('\n')[0] ?? '' };
  }
}

function mapKnown<T, U>(found: Known<T>, map: (value: T) => U): Known<U> {
  return found.ok ? { ok: true, value: map(found.value) } : found;
}
