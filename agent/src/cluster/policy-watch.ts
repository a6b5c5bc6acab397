import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { objectKey } from '@runtime-enforcer/kube/kube-object';
import { objectStore, type ObjectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import type { ReflectorCounters } from '@runtime-enforcer/kube/reflector-counters';
import type { PolicyEffect } from '../node/policy-effect.ts';
import type { Logger } from '../nri/handlers.ts';
import { createPacer } from '../policies/paced.ts';
import { createPathSharing } from '../policies/path-sharing.ts';
import type { LoadedPolicies } from '../policies/policy-table.ts';
import { createLatestWork } from './latest-work.ts';
import { keepPolicyObject, type PolicyObject } from './policy-object.ts';

/** All policies are asked for and compared anew when the last whole list is so old and its watch ends. */
const RESYNC_MS = 3_600_000;
/** A policy that has been waiting to be loaded for longer is overdue. */
const OVERDUE_MS = 5_000;

/** Keeps the kernel's policies equal to those of the API server. */
export interface PolicyWatch {
  start(): void;
  /** Ends the watch, and what is being loaded. The kernel keeps what it has. */
  stop(): Promise<void>;
  /** Resolved when every policy of the API server has been loaded, or has a state that says why not, for the first time. */
  readonly loaded: Promise<void>;
  /** Resolved when the API server could not be asked for the first time. */
  readonly troubled: Promise<void>;
  /** Undefined when all is loaded; otherwise what is not, for people. */
  waitingFor(): string | undefined;
  /** Resolves when the policy is loaded as the API server was last heard to hold it, which now comes first. */
  bringUpToDate(key: string): Promise<void>;
  /** The version of a policy that was last taken. */
  policy(key: string): WorkloadPolicy | undefined;
  /** Whether the proposal `namespace/name` has become a policy. */
  isPromoted(namespace: string, proposal: string): boolean;
  /** Compares with what the table holds, loads and removes what differs, and returns how many did. */
  compare(): number;
  counters(): Readonly<ReflectorCounters>;
}

/** @param parts.timings of the watch, for tests */
export function createPolicyWatch(parts: {
  client: ApiClient;
  table: LoadedPolicies;
  effect: PolicyEffect;
  log: Logger;
  failures: (place: string) => void;
  timings?: Partial<ReflectorTimings>;
}): PolicyWatch {
  const { client, table, effect, log, failures } = parts;
  const sharing = createPathSharing();
  const turn = createPacer();
  const taken = new Map<string, WorkloadPolicy>();
  const loaded = Promise.withResolvers<undefined>();
  const troubled = Promise.withResolvers<undefined>();
  let isSynced = false;
  let trouble = '';

  const store: ObjectStore<PolicyObject, 'promotedFrom'> = objectStore<PolicyObject, 'promotedFrom'>({
    transform: (object) =>
      keepPolicyObject(object, store.get(objectKey(object)), (policy) => sharing.shared(policy)),
    indexes: {
      promotedFrom: ({ namespace, promotedFrom }) =>
        promotedFrom === undefined ? [] : [`${namespace}/${promotedFrom}`],
    },
  });

  const bring = async (key: string): Promise<void> => {
    const object = store.get(key);
    if (object === undefined) {
      taken.delete(key);
      await effect.remove(key);
      return;
    }
    const { generation, reading } = object;
    if (!reading.ok) {
      await effect.refuse(key, reading.problem, { generation });
      return;
    }
    taken.set(key, reading.policy);
    await effect.apply(reading.policy, { generation });
  };

  const work = createLatestWork({
    turn,
    bring,
    onIdle: () => {
      if (isSynced) loaded.resolve(undefined);
    },
  });

  const watch = reflector({
    client,
    resource: WORKLOAD_POLICIES,
    store,
    timings: { resyncMs: RESYNC_MS, ...parts.timings },
    onChange(change) {
      if (change.type === 'updated' && change.value === change.previous) return;
      work.look(change.key);
    },
    onTrouble(error, waitMs) {
      troubled.resolve(undefined);
      failures('policy_watch');
      const message = error instanceof Error ? error.message : String(error);
      log[message === trouble ? 'debug' : 'warn'](
        { err: error, waitMs },
        'the policies of the API server cannot be followed; those that are loaded stay in force',
      );
      trouble = message;
    },
  });

  const compare = (): number => {
    const states = table.states();
    const differing: string[] = [];
    for (const [key] of store.entries()) if (!states.has(key) && !work.isLooking(key)) differing.push(key);
    for (const [key, { state }] of states) {
      if (state !== 'retained' && store.get(key) === undefined && !work.isLooking(key)) differing.push(key);
    }
    for (const key of differing) work.look(key);
    return differing.length;
  };

  void watch.synced.then(() => {
    isSynced = true;
    table.complete();
    // What an agent before had loaded, and is not there any more.
    for (const key of table.states().keys()) if (store.get(key) === undefined) work.look(key);
    log.info({ policies: store.size }, 'the API server told its policies');
    if (work.isIdle) loaded.resolve(undefined);
  });

  return {
    start: () => watch.start(),
    async stop() {
      work.end();
      await watch.stop();
      await work.settled();
    },
    loaded: loaded.promise,
    troubled: troubled.promise,
    waitingFor() {
      if (!isSynced) return 'the API server has not told its policies';
      const overdue = work.longerThan(OVERDUE_MS);
      return overdue === 0 ? undefined : `${overdue} policies are not loaded yet`;
    },
    bringUpToDate: (key) => work.hurry(key),
    policy: (key) => taken.get(key),
    isPromoted: (namespace, proposal) =>
      store.get(`${namespace}/${proposal}`) !== undefined ||
      store.byIndex('promotedFrom', `${namespace}/${proposal}`).length > 0,
    compare: () => (isSynced ? compare() : 0),
    counters: () => watch.counters(),
  };
}
