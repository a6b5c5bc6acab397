import { createHash } from 'node:crypto';
import type { OtherMountNamespaces } from '@runtime-enforcer/api/container-rules';
import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import type { CountFailure } from '../kernel/failures.ts';
import type { GracePeriod } from '../kernel/grace-period.ts';
import type { Logger } from '../nri/handlers.ts';
import type { AllowList, AllowLists } from './allow-list.ts';
import { TableFullError } from './allowed-tables.ts';
import type { PolicyState } from './policy-state.ts';
import type { PolicyWord, PolicyWords } from './policy-words.ts';

/** Stands for every container that the policy does not name; no container can be called so. */
export const UNLISTED = '*';

/** What one policy says of one container, and what the kernel holds of that. */
export interface PolicyRule {
  readonly container: string;
  wanted: AllowList;
  wantedOther: OtherMountNamespaces;
  /** What decides; undefined where nothing of it is in the kernel. */
  current: InForce | undefined;
  /** Every id that says this; containers of an agent before may have another one than new ones. */
  readonly ids: number[];
  /** Containers that hold it. */
  users: number;
  /** False once the policy does not name the container any more. */
  named: boolean;
}

interface InForce {
  readonly list: AllowList;
  readonly mode: PolicyMode;
  readonly otherMountNamespaces: OtherMountNamespaces;
}

export interface PolicyEntry {
  readonly key: string;
  readonly rules: Map<string, PolicyRule>;
  mode: PolicyMode;
  /** Its rules have been read at least once. */
  known: boolean;
  /** The policy is gone; what is left of it is for the containers that hold it. */
  removed: boolean;
  /** Only an agent before knew it so far: whether there still is such a policy has not been told. */
  inherited: boolean;
  /** Why the newest version of the policy cannot be taken; an earlier one may be in force. */
  refusal: Error | undefined;
  state: PolicyState | undefined;
  turn: Promise<unknown>;
  turns: number;
}

export interface WantedRule {
  readonly container: string;
  readonly list: AllowList;
  readonly otherMountNamespaces: OtherMountNamespaces;
}

/** What every policy wants and has. All changes of one policy are made in its turn, except that uses end at any time. */
export interface PolicyEntries {
  get(key: string): PolicyEntry | undefined;
  ensure(key: string, mode: PolicyMode): PolicyEntry;
  /** Runs `action` after what was asked for this policy before; other policies do not wait. */
  inTurn<T>(entry: PolicyEntry, action: () => Promise<T>): Promise<T>;
  /** Takes over what is wanted from now on; a use of each list passes over. */
  want(entry: PolicyEntry, mode: PolicyMode, rules: readonly WantedRule[]): void;
  /** Makes what is wanted effective: every list must be in the kernel. Never throws. */
  enforce(entry: PolicyEntry): PolicyState;
  fail(entry: PolicyEntry, error: Error, mode?: PolicyMode): PolicyState;
  /** Takes note that the newest version cannot be taken; what was wanted before stays wanted. */
  refuse(entry: PolicyEntry, error: Error, mode?: PolicyMode): PolicyState;
  remove(entry: PolicyEntry): void;
  drop(entry: PolicyEntry, rule: PolicyRule): void;
  /** Goes on with an id, a word and a list of an agent before; the use of the list passes over. */
  bequeath(
    entry: PolicyEntry,
    rule: PolicyRule | undefined,
    container: string,
    id: number,
    word: PolicyWord,
    list: AllowList,
  ): PolicyRule;
  isInForce(list: AllowList): boolean;
  /** The lists that decide: those that containers of this node use, and the others. */
  listsByUse(): { readonly used: readonly AllowList[]; readonly unused: readonly AllowList[] };
  /** Takes a list that no container uses out of force; its policies fail. */
  evict(list: AllowList): void;
  /** Policies that may fit now: something has left the kernel since they were asked for last. */
  takeRetries(): PolicyEntry[];
  states(): ReadonlyMap<string, PolicyState>;
  /** Whether lists are on their way out of the kernel. */
  isLeaving(): boolean;
  settled(): Promise<void>;
}

/** What applies to a container of that name. */
export function ruleOf(entry: PolicyEntry, container: string): PolicyRule | undefined {
  const rule = entry.rules.get(container);
  if (rule?.named === true) return rule;
  const others = entry.rules.get(UNLISTED);
  return others?.named === true ? others : undefined;
}

export function createPolicyEntries(parts: {
  readonly lists: AllowLists;
  readonly words: PolicyWords;
  readonly grace: GracePeriod;
  readonly log: Logger;
  readonly countFailure: CountFailure;
}): PolicyEntries {
  const { lists, words, grace, log, countFailure } = parts;
  const entries = new Map<string, PolicyEntry>();
  const inForce = new Map<AllowList, number>();
  const leaving = new Set<Promise<unknown>>();
  const lacking = new Set<PolicyEntry>();
  let hasRoomAgain = false;

  /** What goes on in the background and may only be counted when it fails. */
  const leave = (work: Promise<boolean>): void => {
    const done = work
      .then((madeRoom) => {
        hasRoomAgain ||= madeRoom;
      })
      .catch((error: unknown) => {
        countFailure('list_removal');
        log.error({ err: error }, 'a list that nobody uses could not be taken out of the kernel');
      })
      .finally(() => leaving.delete(done));
    leaving.add(done);
  };
  const setCurrent = (rule: PolicyRule, next: InForce | undefined): void => {
    const before = rule.current;
    rule.current = next;
    if (next !== undefined) inForce.set(next.list, (inForce.get(next.list) ?? 0) + 1);
    if (before === undefined) return;
    const left = (inForce.get(before.list) ?? 1) - 1;
    if (left === 0) inForce.delete(before.list);
    else inForce.set(before.list, left);
    leave(lists.release(before.list));
  };
  const clear = (ids: readonly number[]): void => {
    for (const id of ids) {
      guardWord(() => {
        words.clear(id);
      });
    }
  };
  const guardWord = (write: () => void): void => {
    try {
      write();
    } catch (error) {
      countFailure('policy_word');
      log.error({ err: error }, 'a word of the policies map could not be written');
    }
  };
  const forget = (entry: PolicyEntry): void => {
    const isGone = entry.removed && entry.refusal === undefined && entry.rules.size === 0;
    if (entry.turns === 0 && isGone) entries.delete(entry.key);
  };
  const describe = (entry: PolicyEntry, state: PolicyState['state'], mode: PolicyMode, message?: string) => {
    const rules = Array.from(entry.rules.values()).filter(({ current }) => current !== undefined);
    const paths = rules.reduce((sum, { current }) => sum + (current?.list.paths.length ?? 0), 0);
    entry.state = { state, mode, ...(message !== undefined && { message }), paths, digest: digestOf(rules) };
    return entry.state;
  };
  const fail = (entry: PolicyEntry, error: Error, asked = entry.mode): PolicyState => {
    const before = Array.from(entry.rules.values()).find(({ current }) => current !== undefined)?.current;
    if (
      error instanceof TableFullError ||
      error instanceof IdsExhaustedError ||
      error instanceof EvictedError
    ) {
      lacking.add(entry);
    } else {
      lacking.delete(entry);
    }
    const kept = before === undefined ? '' : '; what was loaded before stays in force';
    return describe(entry, 'failed', before?.mode ?? asked, `${error.message}${kept}`);
  };
  const drop = (entry: PolicyEntry, rule: PolicyRule): void => {
    entry.rules.delete(rule.container);
    clear(rule.ids);
    const ids = [...rule.ids];
    leave(
      grace.passed().then(() => {
        for (const id of ids) words.free(id);
        return ids.length > 0;
      }),
    );
    setCurrent(rule, undefined);
    leave(lists.release(rule.wanted));
    if (entry.removed && entry.refusal === undefined) describe(entry, 'retained', entry.mode);
    else if (entry.state) describe(entry, entry.state.state, entry.state.mode, entry.state.message);
    forget(entry);
  };
  const add = (entry: PolicyEntry, rule: Omit<PolicyRule, 'users' | 'named' | 'current'>): PolicyRule => {
    const added = { ...rule, current: undefined, users: 0, named: true };
    entry.rules.set(rule.container, added);
    return added;
  };

  return {
    get: (key) => entries.get(key),
    ensure(key, mode) {
      const known = entries.get(key);
      if (known !== undefined) return known;
      const entry: PolicyEntry = {
        key,
        rules: new Map(),
        mode,
        known: false,
        removed: false,
        inherited: false,
        refusal: undefined,
        state: undefined,
        turn: Promise.resolve(),
        turns: 0,
      };
      entries.set(key, entry);
      return entry;
    },
    async inTurn(entry, action) {
      entry.turns++;
      const turn = entry.turn.then(action);
      entry.turn = turn.catch(() => undefined);
      try {
        return await turn;
      } finally {
        entry.turns--;
        forget(entry);
      }
    },
    want(entry, mode, wanted) {
      entry.removed = false;
      entry.inherited = false;
      entry.refusal = undefined;
      entry.known = true;
      entry.mode = mode;
      for (const rule of entry.rules.values()) rule.named = false;
      for (const { container, list, otherMountNamespaces } of wanted) {
        const rule = entry.rules.get(container);
        if (rule === undefined) {
          add(entry, { container, wanted: list, wantedOther: otherMountNamespaces, ids: [] });
          continue;
        }
        leave(lists.release(rule.wanted));
        rule.wanted = list;
        rule.wantedOther = otherMountNamespaces;
        rule.named = true;
      }
      for (const rule of [...entry.rules.values()]) {
        if (!rule.named && rule.users === 0) drop(entry, rule);
      }
    },
    enforce(entry) {
      const rules = Array.from(entry.rules.values()).filter(({ named }) => named);
      const given: PolicyRule[] = [];
      for (const rule of rules.filter(({ ids }) => ids.length === 0)) {
        const id = words.allocate();
        if (id === undefined) {
          for (const each of given) words.free(each.ids.pop() ?? 0);
          return fail(entry, new IdsExhaustedError(words.capacity));
        }
        rule.ids.push(id);
        given.push(rule);
      }
      const changed = rules.filter((rule) => !isCurrent(rule, entry.mode));
      try {
        for (const rule of changed) {
          for (const id of rule.ids) words.write(id, wordOf(wantedForce(rule, entry.mode)));
        }
      } catch (error) {
        for (const rule of changed) {
          const { current } = rule;
          for (const id of rule.ids) {
            guardWord(() => {
              if (current === undefined) words.clear(id);
              else words.write(id, wordOf(current));
            });
          }
        }
        return fail(entry, error instanceof Error ? error : new Error(String(error)));
      }
      for (const rule of changed) {
        lists.share(rule.wanted);
        setCurrent(rule, wantedForce(rule, entry.mode));
      }
      lacking.delete(entry);
      return describe(entry, 'ready', entry.mode);
    },
    fail,
    refuse(entry, error, mode) {
      entry.refusal = error;
      entry.inherited = false;
      return fail(entry, error, mode);
    },
    remove(entry) {
      entry.removed = true;
      entry.inherited = false;
      entry.refusal = undefined;
      lacking.delete(entry);
      for (const rule of [...entry.rules.values()]) if (rule.users === 0) drop(entry, rule);
      describe(entry, 'retained', entry.state?.mode ?? entry.mode);
    },
    drop,
    bequeath(entry, known, container, id, word, list) {
      const current = { list, mode: word.mode, otherMountNamespaces: word.otherMountNamespaces };
      const rule =
        known ??
        add(entry, { container, wanted: lists.share(list), wantedOther: word.otherMountNamespaces, ids: [] });
      rule.ids.push(id);
      if (rule.current === undefined) {
        setCurrent(rule, current);
      } else {
        const { current: already } = rule;
        guardWord(() => {
          words.write(id, wordOf(already));
        });
        leave(lists.release(list));
      }
      if (entry.state === undefined) entry.removed = entry.inherited = true;
      if (entry.removed) describe(entry, 'retained', word.mode);
      return rule;
    },
    isInForce: (list) => inForce.has(list),
    listsByUse() {
      const used = new Set<AllowList>();
      for (const { rules } of entries.values()) {
        for (const { current, users } of rules.values()) if (users > 0 && current) used.add(current.list);
      }
      return { used: [...used], unused: Array.from(inForce.keys()).filter((list) => !used.has(list)) };
    },
    evict(list) {
      for (const entry of entries.values()) {
        const rules = Array.from(entry.rules.values()).filter(({ current }) => current?.list === list);
        if (rules.length === 0) continue;
        for (const rule of rules) {
          clear(rule.ids);
          setCurrent(rule, undefined);
        }
        fail(entry, new EvictedError());
      }
    },
    takeRetries() {
      if (!hasRoomAgain) return [];
      hasRoomAgain = false;
      return [...lacking];
    },
    states() {
      const states = new Map<string, PolicyState>();
      for (const { key, state } of entries.values()) if (state !== undefined) states.set(key, state);
      return states;
    },
    isLeaving: () => leaving.size > 0,
    async settled() {
      while (leaving.size > 0) await Promise.all(leaving);
    },
  };
}

/** More policies and containers than the kernel's map has words for. */
class IdsExhaustedError extends Error {
  override readonly name = 'IdsExhaustedError';

  constructor(capacity: number) {
    super(
      `all ${capacity} places for a policy's container are taken; start the agent with a higher --capacity`,
    );
  }
}

class EvictedError extends Error {
  override readonly name = 'EvictedError';

  constructor() {
    super(
      'its list gave way to one that containers of this node use, because a table is full; it comes back when one ' +
        'needs it; start the agent with a higher --capacity',
    );
  }
}

function wantedForce(rule: PolicyRule, mode: PolicyMode): InForce {
  return { list: rule.wanted, mode, otherMountNamespaces: rule.wantedOther };
}

function isCurrent({ current, wanted, wantedOther }: PolicyRule, mode: PolicyMode): boolean {
  return current?.list === wanted && current.mode === mode && current.otherMountNamespaces === wantedOther;
}

function wordOf({ list, mode, otherMountNamespaces }: InForce): PolicyWord {
  return { list: list.id, mode, otherMountNamespaces };
}

function digestOf(rules: readonly PolicyRule[]): string {
  const said = rules
    .map(({ container, current }) => [container, current?.otherMountNamespaces, current?.list.digest])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(said)).digest('hex');
}
