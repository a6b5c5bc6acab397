import { NAMESPACES } from '@runtime-enforcer/kube/resource-path';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { Connection } from '../cluster/connection.ts';
import { getObject, listObjects, type NamedResource, PODS, POLICIES, PROPOSALS } from '../cluster/objects.ts';
import { policyName } from '../cluster/resource-names.ts';
import { containerNames, templatePolicy, WORKLOADS } from '../cluster/workloads.ts';
import { listAt, numberAt, recordAt, textAt } from '../output/json-field.ts';
import type { CompletionSource } from '../tree/command-spec.ts';
import type { Candidate, Completable } from './command-line.ts';

type ClusterSource = Exclude<CompletionSource, 'contexts' | 'clusters' | 'users' | 'files'>;

/** Asks the cluster. Throws what the requests throw. */
export async function clusterCandidates(
  source: ClusterSource,
  { operands }: Pick<Completable, 'operands'>,
  connection: Connection,
): Promise<readonly Candidate[]> {
  const { client, namespace } = connection;
  const names = async (resource: NamedResource, describe: (object: KubeObject) => string) =>
    (await listObjects(client, resource, namespace))
      .filter(({ metadata }) => !operands.includes(metadata.name))
      .map((object) => candidate(object.metadata.name, describe(object)));
  switch (source) {
    case 'policies':
      return await names(POLICIES, (policy) => textAt(policy, 'spec', 'mode'));
    case 'proposals':
      return await names(PROPOSALS, (proposal) => {
        const [owner] = listAt(proposal, 'metadata', 'ownerReferences');
        return textAt(owner, 'name') === '' ? '' : `${textAt(owner, 'kind')}/${textAt(owner, 'name')}`;
      });
    case 'pods':
      return await names(PODS, (pod) => textAt(pod, 'status', 'phase'));
    case 'namespaces':
      return (await listObjects(client, NAMESPACES, undefined)).map(({ metadata }) =>
        candidate(metadata.name, ''),
      );
    case 'workloads':
    case 'boundWorkloads':
      return await workloads(connection, source);
    case 'podContainers': {
      const pod = await getObject(client, PODS, { namespace, name: operands[0] ?? '' });
      return containerNames(pod).map((name) => candidate(name, ''));
    }
    case 'policyContainers':
    case 'allowablePaths':
    case 'allowedPaths':
    case 'violationIds': {
      const [name = '', container = '', ...typed] = operands;
      const policy = await getObject(client, POLICIES, { namespace, name: policyName(name) });
      return ofPolicy(source, policy, container).filter(({ word }) => !typed.includes(word));
    }
  }
}

function ofPolicy(
  source: 'policyContainers' | 'allowablePaths' | 'allowedPaths' | 'violationIds',
  policy: KubeObject,
  container: string,
): readonly Candidate[] {
  const violations = listAt(policy, 'status', 'violations');
  switch (source) {
    case 'policyContainers':
      return Object.keys(recordAt(policy, 'spec', 'rulesByContainer')).map((name) => candidate(name, ''));
    case 'allowedPaths':
      return listAt(policy, 'spec', 'rulesByContainer', container, 'executables', 'allowed')
        .filter((path) => typeof path === 'string')
        .map((path) => candidate(path, ''));
    case 'allowablePaths': {
      const paths = violations
        .filter((violation) => textAt(violation, 'containerName') === container)
        .map((violation) => textAt(violation, 'executablePath'));
      return [...new Set(paths)].map((path) => candidate(path, ''));
    }
    case 'violationIds':
      return violations.map((violation) =>
        candidate(String(numberAt(violation, 'id') ?? ''), textAt(violation, 'executablePath')),
      );
  }
}

async function workloads(
  { client, namespace }: Connection,
  source: 'workloads' | 'boundWorkloads',
): Promise<readonly Candidate[]> {
  const lists = await Promise.all(
    WORKLOADS.filter(({ kind }) => kind !== 'ReplicaSet' && kind !== 'Job').map(async (resource) => {
      const objects = await listObjects(client, resource, namespace).catch(() => []);
      return objects
        .map((object) => ({ object, policy: templatePolicy(object, resource) }))
        .filter(({ policy }) => source === 'workloads' || policy !== undefined)
        .map(({ object, policy = '' }) => candidate(`${resource.singular}/${object.metadata.name}`, policy));
    }),
  );
  return lists.flat();
}

function candidate(word: string, description: string): Candidate {
  return description === '' ? { word } : { word, description };
}
