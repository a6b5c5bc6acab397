import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { objectKey } from '@runtime-enforcer/kube/kube-object';
import { reportError } from '../error-text.ts';
import type { ProtectionFacts } from '../pod-protection.ts';
import { findComponents, isReady, nodeOf } from './components.ts';
import type { Connection } from './connection.ts';
import { listObjects, PODS, POLICIES, policyOf } from './objects.ts';

/**
 * Asks for labelled pods, policies and agents.
 *
 * @param namespace undefined for the whole cluster
 * @param note told about a policy that cannot be read
 */
export async function protectionFacts(
  { client }: Connection,
  namespace: string | undefined,
  note: (line: string) => void,
): Promise<ProtectionFacts> {
  const [pods, policies, agentNodes] = await Promise.all([
    listObjects(client, PODS, namespace, POLICY_LABEL),
    listObjects(client, POLICIES, namespace),
    findAgentNodes(client),
  ]);
  const readable = new Map<string, WorkloadPolicy>();
  for (const object of policies) {
    try {
      readable.set(objectKey(object), policyOf(object));
    } catch (error) {
      note(reportError(error).text);
    }
  }
  return { pods, policies: readable, agentNodes };
}

/** Where an agent is ready; undefined where the product's pods may not be seen. */
async function findAgentNodes(client: Connection['client']): Promise<ReadonlySet<string> | undefined> {
  try {
    const agents = (await findComponents(client)).find(({ component }) => component === 'agent');
    return new Set(agents?.pods.filter(isReady).map(nodeOf));
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}
