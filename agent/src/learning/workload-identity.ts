import { hookCommands } from '@runtime-enforcer/api/hook-command';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { objectPath, PODS, type Resource } from '@runtime-enforcer/kube/resource-path';
import {
  controllerOf,
  isOfKind,
  labelsOf,
  type OwnedWorkload,
  type OwnerClaim,
  type OwnerKind,
  podOwnerKind,
} from './owner-chain.ts';
import type { RequestPace } from './request-pace.ts';

const REQUEST_TIMEOUT_MS = 10_000;
/** For how long an owner that was read is not read again. */
const OWNER_FRESH_MS = 60_000;
const MAX_OWNERS = 2_000;

/** A pod as the container runtime knows it. */
export interface PodReference {
  readonly namespace: string;
  readonly podName: string;
  readonly podUid: string;
}

/** What the API says about a pod. */
export type PodIdentity =
  | {
      readonly kind: 'workload';
      readonly workload: OwnedWorkload;
      /** See `hookCommands`. */
      readonly commands: ReadonlyMap<string, readonly string[]>;
    }
  | { readonly kind: 'refused'; readonly reason: IdentityRefusal; readonly detail: string };

/**
 * Why a pod is not learned. `bare`: nothing controls it. `bound`: it names a policy. `gone`: there is no such pod any
 * more. `unsupported`: its controller is of a kind that has no proposals. `forged`: its owner does not exist, or would
 * not take the pod for its own.
 */
export type IdentityRefusal = 'bare' | 'bound' | 'gone' | 'unsupported' | 'forged';

/**
 * Tells which workload a pod belongs to: by its owner references as the API has them, each held to the owner itself.
 * Names and labels, which a tenant chooses, prove nothing.
 */
export interface WorkloadIdentities {
  /** Rejects with an ApiError or a ConnectionError where the API does not answer: then nothing is known yet. */
  identify(pod: PodReference, signal: AbortSignal): Promise<PodIdentity>;
}

type Refusal = Extract<PodIdentity, { kind: 'refused' }>;

interface KnownOwner {
  readonly readAtMs: number;
  readonly object: Promise<KubeObject | undefined>;
}

export function createWorkloadIdentities({
  client,
  pace,
}: {
  readonly client: ApiClient;
  readonly pace: RequestPace;
}): WorkloadIdentities {
  /** By uid as claimed: no claim gets an answer that was given to another. Oldest first. */
  const owners = new Map<string, KnownOwner>();

  const read = async (
    resource: Resource,
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> => {
    let path: string;
    try {
      path = objectPath({ resource, namespace, name });
    } catch {
      // No object has such a name.
      return undefined;
    }
    await pace.turn(signal);
    try {
      const json = await client.request({ path, signal, timeoutMs: REQUEST_TIMEOUT_MS });
      return isKubeObject(json) ? json : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  /** The owner that is claimed; undefined if there is none with that name and uid in the namespace. */
  const ownerOf = async (
    claim: OwnerClaim,
    { resource }: OwnerKind,
    namespace: string,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> => {
    const key = JSON.stringify([namespace, resource.plural, claim.name, claim.uid]);
    const known = owners.get(key);
    if (known !== undefined && performance.now() - known.readAtMs < OWNER_FRESH_MS) return await known.object;
    const object = read(resource, namespace, claim.name, signal).then((found) =>
      found?.metadata.uid === claim.uid ? found : undefined,
    );
    owners.delete(key);
    owners.set(key, { readAtMs: performance.now(), object });
    for (const oldest of owners.keys()) {
      if (owners.size <= MAX_OWNERS) break;
      owners.delete(oldest);
    }
    try {
      const found = await object;
      if (found === undefined) owners.delete(key);
      return found;
    } catch (error) {
      owners.delete(key);
      throw error;
    }
  };

  return {
    async identify({ namespace, podName, podUid }, signal) {
      const pod = await read(PODS, namespace, podName, signal);
      if (pod?.metadata.uid !== podUid) {
        return refusal('gone', `the API knows no pod ${namespace}/${podName} with the uid ${podUid}`);
      }
      const podLabels = labelsOf(pod);
      if (Object.hasOwn(podLabels, POLICY_LABEL)) return refusal('bound', 'the pod names a policy');
      const claim = controllerOf(pod);
      if (claim === undefined) return refusal('bare', 'nothing controls the pod');
      const kind = podOwnerKind(claim);
      if (kind === undefined) return unsupported(claim);
      const commands = hookCommands(pod['spec']);

      const held = async (
        claimed: OwnerClaim,
        of: OwnerKind,
      ): Promise<{ readonly owner: KubeObject } | Refusal> => {
        const owner = await ownerOf(claimed, of, namespace, signal);
        const named = `${claimed.kind} ${namespace}/${claimed.name}`;
        if (owner === undefined) {
          const detail = `the pod claims to belong to ${named} with the uid ${claimed.uid}, which does not exist`;
          return refusal('forged', detail);
        }
        if (of.takes(owner, podLabels)) return { owner };
        return refusal('forged', `the pod claims to belong to ${named}, which does not select its labels`);
      };

      const first = await held(claim, kind);
      if (!('owner' in first)) return first;
      const above = kind.owner === undefined ? undefined : controllerOf(first.owner);
      if (kind.owner === undefined || above === undefined) {
        return { kind: 'workload', workload: workloadOf(claim, kind, namespace), commands };
      }
      if (!isOfKind(above, kind.owner)) return unsupported(above);
      const second = await held(above, kind.owner);
      if (!('owner' in second)) return second;
      return { kind: 'workload', workload: workloadOf(above, kind.owner, namespace), commands };
    },
  };
}

function workloadOf(
  { name, uid }: OwnerClaim,
  { kind, apiVersion }: OwnerKind,
  namespace: string,
): OwnedWorkload {
  return { kind, name, namespace, apiVersion, uid, truncated: false };
}

function refusal(reason: IdentityRefusal, detail: string): Refusal {
  return { kind: 'refused', reason, detail };
}

function unsupported({ apiVersion, kind }: OwnerClaim): Refusal {
  return refusal('unsupported', `${apiVersion} ${kind}`);
}
