/** Brings the newest state of each key into effect; keys do not wait for each other. */
export interface LatestWork {
  /** The key has changed: it is brought once more, after what is under way for it. */
  look(key: string): void;
  isLooking(key: string): boolean;
  readonly isIdle: boolean;
  /** Lets the key go first, and resolves when it has been brought as it is now. */
  hurry(key: string): Promise<void>;
  /** How many keys have been waiting for longer. */
  longerThan(ms: number): number;
  /** Nothing more is begun. */
  end(): void;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
}

interface Looking {
  readonly done: Promise<void>;
  readonly sinceMs: number;
  readonly hurry: () => void;
}

/**
 * @param turn awaited before each bringing, so that thousands of keys leave the loop to others
 * @param bring never rejects
 * @param onIdle called whenever the last key is done
 */
export function createLatestWork(parts: {
  turn: () => Promise<void>;
  bring: (key: string) => Promise<void>;
  onIdle: () => void;
}): LatestWork {
  const { turn, bring, onIdle } = parts;
  const changed = new Set<string>();
  const looking = new Map<string, Looking>();
  let isEnded = false;

  const work = async (key: string, hurried: Promise<void>): Promise<void> => {
    try {
      while (changed.has(key)) {
        await Promise.race([turn(), hurried]);
        changed.delete(key);
        if (isEnded) return;
        await bring(key);
      }
    } finally {
      // In the same turn as the look at `changed`: a change that comes before the promise settles begins anew.
      looking.delete(key);
      if (looking.size === 0) onIdle();
    }
  };

  return {
    look(key) {
      changed.add(key);
      if (looking.has(key)) return;
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const done = work(key, promise);
      looking.set(key, { done, sinceMs: performance.now(), hurry: () => resolve(undefined) });
    },
    isLooking: (key) => looking.has(key),
    get isIdle() {
      return looking.size === 0;
    },
    async hurry(key) {
      const known = looking.get(key);
      known?.hurry();
      await known?.done;
    },
    longerThan(ms) {
      const now = performance.now();
      return Array.from(looking.values()).filter(({ sinceMs }) => now - sinceMs > ms).length;
    },
    end() {
      isEnded = true;
      for (const { hurry } of looking.values()) hurry();
    },
    async settled() {
      await Promise.all(Array.from(looking.values(), ({ done }) => done));
    },
  };
}
