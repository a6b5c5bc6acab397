/**
 * Tells what others have written to an object from what comes back in a watch of what this process wrote. A look that
 * ends in a write has seen everything before that write: its own version need not be looked at again.
 */
export interface OwnWrites {
  /** A look at the object begins. */
  begin(key: string): void;
  /** It has ended. @param written the version of what it wrote, or undefined where it wrote nothing */
  end(key: string, written: string | undefined): void;
  /** The watch tells this version of the object. */
  heard(key: string, version: string | undefined): void;
  /** The object is gone. */
  forget(key: string): void;
}

/** @param onForeign called with an object that is to be looked at: somebody else may have written it */
export function ownWrites(onForeign: (key: string) => void): OwnWrites {
  /** Versions that the watch has not told yet. */
  const awaited = new Map<string, string>();
  /** Objects that are looked at now, with the last version told meanwhile: the watch may be faster than the answer. */
  const looks = new Map<string, string | undefined>();

  return {
    begin: (key) => void looks.set(key, undefined),
    end(key, written) {
      const last = looks.get(key);
      looks.delete(key);
      if (last !== undefined && last !== written) onForeign(key);
      else if (last === undefined && written !== undefined) awaited.set(key, written);
    },
    heard(key, version) {
      if (version !== undefined && looks.has(key)) {
        looks.set(key, version);
        return;
      }
      const isOwn = version !== undefined && awaited.get(key) === version;
      awaited.delete(key);
      if (!isOwn) onForeign(key);
    },
    forget: (key) => void awaited.delete(key),
  };
}
