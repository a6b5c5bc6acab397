import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { CountFailure } from '../kernel/failures.ts';
import { createGracePeriod } from '../kernel/grace-period.ts';
import type { KernelMaps } from '../kernel/maps.ts';
import type { Native } from '../kernel/native.ts';
import type { Logger } from '../nri/handlers.ts';
import { createAllowLists, type AllowLists } from './allow-list.ts';
import { createAllowedTables, type AllowedTables } from './allowed-tables.ts';
import { createInheritance, type Inheritance } from './inheritance.ts';
import { createPacer } from './paced.ts';
import { createPathInterner, type PathInterner } from './path-interner.ts';
import { createListLoader } from './list-loader.ts';
import {
  createPolicyEntries,
  ruleOf,
  UNLISTED,
  type PolicyEntries,
  type PolicyEntry,
  type PolicyRule,
} from './policy-entry.ts';
import type { PolicyState } from './policy-state.ts';
import { createPolicyWords } from './policy-words.ts';

export type { PolicyState } from './policy-state.ts';

/** The policies and their lists in the kernel. Names are `namespace/name`. */
export interface PolicyTable {
  /**
   * Loads a policy, or what changed of it: new lists first, then one store per container makes list and mode
   * effective, then the old lists go. Never rejects: the state says what came of it. Calls for one policy take
   * effect in their order; calls for different ones do not wait for each other.
   * Call {@link ContainerBinder.policyChanged} afterwards.
   */
  apply(policy: WorkloadPolicy): Promise<PolicyState>;
  /**
   * Takes note that there is a policy of this name which cannot be loaded as it stands: it is `failed` with this
   * message. What was loaded before stays in force.
   */
  refuse(namespacedName: string, message: string): Promise<PolicyState>;
  /**
   * Forgets a policy. Containers in use keep their last list until they end: then it is `retained`. An unknown
   * name is ignored. Call {@link ContainerBinder.policyChanged} afterwards.
   */
  remove(namespacedName: string): Promise<void>;
  /**
   * From now on a policy that was not applied does not exist; those that {@link states} tells beside them are to be
   * removed. Before that, containers that start are bound to what an agent before had loaded for their policy and its
   * containers held.
   */
  complete(): void;
  state(namespacedName: string): PolicyState | undefined;
  states(): ReadonlyMap<string, PolicyState>;
  /** What the kernel is to do for a container of a pod that names the policy. Never rejects. */
  acquire(namespacedName: string, containerName: string): Promise<PolicyAnswer>;
  /**
   * Goes on with the policy id that an agent before had given a container. Undefined where that is not to be: it
   * is not known, belongs to another container's rules, or the policy does not name the container.
   */
  inherit(namespacedName: string, containerName: string, policyId: number): PolicyUse | undefined;
  /** The same claim once more, to be released by itself. */
  again(use: PolicyUse): PolicyUse;
  /** Drops what an agent before had loaded and nobody took over. */
  dropInherited(): Promise<void>;
  /** Resolves when nothing is being removed any more. */
  settled(): Promise<void>;
}

/** What whoever follows policies needs of the table. */
export type LoadedPolicies = Pick<
  PolicyTable,
  'apply' | 'refuse' | 'remove' | 'complete' | 'state' | 'states'
>;

/** A container's claim on a policy. As long as it is held, the id has a word in the kernel. */
export interface PolicyUse {
  readonly policyId: number;
  /** False where the policy does not name the container. */
  readonly listed: boolean;
  /** Whether the policy now has another answer for the container. */
  readonly stale: boolean;
  /** To be called when no program can look the container up any more. */
  release(): void;
}

export type PolicyAnswer =
  | { readonly kind: 'enforced'; readonly use: PolicyUse }
  /** The policy does not name the container and lets such containers alone. */
  | { readonly kind: 'unrestricted' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly message: string };

export interface PolicyTableParts {
  readonly native: Pick<Native, 'waitForReaders'>;
  readonly maps: KernelMaps;
  readonly log: Logger;
  readonly countFailure: CountFailure;
}

interface Inner {
  readonly entries: PolicyEntries;
  readonly inheritance: Inheritance;
  readonly lists: AllowLists;
  readonly tables: AllowedTables;
  readonly paths: PathInterner;
}

/**
 * Makes the table over the kernel's maps, and reads what an agent before left in them. Rejects with a NativeError
 * if they cannot be read.
 */
export async function createPolicyTable(parts: PolicyTableParts): Promise<PolicyTable> {
  const { maps } = parts;
  const paths = createPathInterner();
  const tables = createAllowedTables(maps.allowed, paths);
  const grace = createGracePeriod(parts.native);
  const lists = createAllowLists(tables, paths, grace);
  const words = createPolicyWords(maps.policies);
  const entries = createPolicyEntries({ ...parts, lists, words, grace });
  const inheritance = await createInheritance({ ...parts, tables: maps.allowed, lists, words, grace });
  return createTable({ entries, inheritance, lists, tables, paths });
}

function createTable({ entries, inheritance, lists, tables, paths }: Inner): PolicyTable {
  const loader = createListLoader(entries, lists, tables);
  const begin = createPacer();
  let isComplete = false;

  /** Brings the kernel to what is wanted, or leaves everything as it is and says why. */
  const settle = async (entry: PolicyEntry, evict: boolean): Promise<PolicyState> => {
    const error = await loader.load(entry, evict);
    if (error !== undefined) return entries.fail(entry, error);
    const state = entries.enforce(entry);
    return entry.refusal === undefined ? state : entries.fail(entry, entry.refusal);
  };

  const retryWaiting = (): void => {
    for (const entry of entries.takeRetries())
      void entries.inTurn(entry, () => settle(entry, isInUse(entry)));
  };

  const repeats = new WeakMap<PolicyUse, () => PolicyUse>();
  const useOf = (
    entry: PolicyEntry,
    rule: PolicyRule,
    containerName: string,
    policyId: number,
  ): PolicyUse => {
    let held = true;
    rule.users++;
    const use: PolicyUse = {
      policyId,
      listed: rule.container !== UNLISTED,
      get stale() {
        return !entry.removed && ruleOf(entry, containerName) !== rule;
      },
      release() {
        if (!held) return;
        held = false;
        rule.users--;
        // One that crashed comes back when its last container has gone, and its policy may still be told.
        const isKept = entry.inherited && !isComplete;
        if (rule.users === 0 && !isKept && (entry.removed || !rule.named)) {
          entries.drop(entry, rule);
          void entries.settled().then(retryWaiting);
        }
      },
    };
    repeats.set(use, () => useOf(entry, rule, containerName, policyId));
    return use;
  };

  return {
    apply(policy) {
      const { namespace, name } = policy.metadata;
      const entry = entries.ensure(`${namespace}/${name}`, policy.spec.mode);
      return entries.inTurn(entry, async () => {
        await begin();
        const wanted = wantedLists(policy);
        const taken = wanted.map(([container, rules]) => ({
          container,
          list: lists.take(rules.allowed),
          otherMountNamespaces: rules.otherMountNamespaces,
        }));
        const tooLong = taken.find(({ list }) => longPath(list.paths) !== undefined);
        if (tooLong !== undefined) {
          const path = longPath(tooLong.list.paths) ?? 0;
          const message = tooLongMessage(tooLong.container, paths.text(path), paths.byteLength(path), tables);
          for (const { list } of taken) void lists.release(list);
          return entries.refuse(entry, new Error(message), policy.spec.mode);
        }
        entries.want(entry, policy.spec.mode, taken);
        const state = await settle(entry, isInUse(entry));
        void entries.settled().then(retryWaiting);
        return state;
      });
    },
    refuse(namespacedName, message) {
      const entry = entries.ensure(namespacedName, 'monitor');
      return entries.inTurn(entry, () => Promise.resolve(entries.refuse(entry, new Error(message))));
    },
    async remove(namespacedName) {
      const entry = entries.get(namespacedName);
      if (entry === undefined) return;
      await entries.inTurn(entry, () => {
        entries.remove(entry);
        return Promise.resolve();
      });
      void entries.settled().then(retryWaiting);
    },
    complete() {
      isComplete = true;
    },
    state: (namespacedName) => entries.get(namespacedName)?.state,
    states: () => entries.states(),
    async acquire(namespacedName, containerName) {
      const entry = entries.get(namespacedName);
      if (entry === undefined) return { kind: 'unknown' };
      // What is in force is good enough; a policy that is loaded for the first time is waited for.
      if (ruleOf(entry, containerName)?.current === undefined) {
        await entries.inTurn(entry, async () => {
          const isWanting = !entry.removed && (entry.known || entry.refusal === undefined);
          if (isWanting && ruleOf(entry, containerName)?.current === undefined) await settle(entry, true);
        });
      }
      const rule = ruleOf(entry, containerName);
      const isInherited = entry.inherited && !isComplete && rule !== undefined;
      if (entry.removed && entry.refusal === undefined && !isInherited) return { kind: 'unknown' };
      if (rule === undefined && entry.known && !entry.removed) return { kind: 'unrestricted' };
      const id = rule?.ids[0];
      if ((entry.removed && !isInherited) || rule?.current === undefined || id === undefined) {
        return { kind: 'failed', message: entry.state?.message ?? 'it is not in the kernel' };
      }
      return { kind: 'enforced', use: useOf(entry, rule, containerName, id) };
    },
    inherit(namespacedName, containerName, policyId) {
      const claim = inheritance.claim(policyId);
      if (claim === undefined) return undefined;
      const known = entries.get(namespacedName);
      const rule = known && ruleOf(known, containerName);
      if (claim.kind === 'claimed') {
        return known !== undefined && claim.rule === rule
          ? useOf(known, rule, containerName, policyId)
          : undefined;
      }
      if (known?.known === true && !known.removed && rule === undefined) return undefined;
      const entry = known ?? entries.ensure(namespacedName, claim.word.mode);
      const heir = entries.bequeath(entry, rule, containerName, policyId, claim.word, claim.list);
      inheritance.claimed(policyId, heir);
      return useOf(entry, heir, containerName, policyId);
    },
    again(use) {
      const repeat = repeats.get(use);
      if (repeat === undefined) throw new TypeError('expected a claim of this table');
      return repeat();
    },
    async dropInherited() {
      await inheritance.drop();
      retryWaiting();
    },
    settled: () => entries.settled(),
  };

  function longPath(list: Uint32Array): number | undefined {
    return list.find((path) => paths.byteLength(path) > tables.pathBytesMax);
  }
}

interface WantedRules {
  readonly allowed: readonly ExecutablePath[];
  readonly otherMountNamespaces: 'deny' | 'unchecked';
}

/** The rules by container; where unlisted containers may start nothing, that is an empty list of its own. */
function wantedLists({ spec }: WorkloadPolicy): [container: string, rules: WantedRules][] {
  const wanted: [string, WantedRules][] = Array.from(
    spec.rulesByContainer,
    ([container, { executables }]) => [container, executables],
  );
  if (spec.unlistedContainers === 'deny')
    wanted.push([UNLISTED, { allowed: [], otherMountNamespaces: 'deny' }]);
  return wanted;
}

function isInUse(entry: PolicyEntry): boolean {
  return Array.from(entry.rules.values()).some(({ users }) => users > 0);
}

function tooLongMessage(
  container: string,
  path: string,
  bytes: number,
  { pathBytesMax }: AllowedTables,
): string {
  const shown = path.length > 100 ? `${path.slice(0, 100)}…` : path;
  return (
    `spec.rulesByContainer.${container}.executables.allowed: ${JSON.stringify(shown)} has ${bytes} bytes, and this ` +
    `kernel can hold paths of up to ${pathBytesMax}; take it off the list, or update the kernel to 5.11 or later`
  );
}
