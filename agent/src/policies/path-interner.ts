import { executablePathBytes, type ExecutablePath } from '@runtime-enforcer/api/executable-path';

/** Texts that are their own bytes: most paths. */
const PLAIN = /^[ -[\]-~]*$/;

/** Every path is kept once, however many lists hold it; a list holds numbers. */
export interface PathInterner {
  /** The path's number; each call counts as one use. */
  use(path: ExecutablePath): number;
  /** Takes one use back; an unused number is given to another path later. */
  release(number: number): void;
  text(number: number): ExecutablePath;
  byteLength(number: number): number;
  /** Writes the path's bytes. */
  write(number: number, into: Buffer, offset: number): void;
  /** How many different paths are in use. */
  readonly size: number;
}

interface Interned {
  readonly text: ExecutablePath;
  readonly byteLength: number;
  /** Undefined where the text is its own bytes. */
  readonly bytes: Uint8Array | undefined;
  uses: number;
}

export function createPathInterner(): PathInterner {
  const numbers = new Map<ExecutablePath, number>();
  const paths: (Interned | undefined)[] = [];
  const unused: number[] = [];

  const at = (number: number): Interned => {
    const path = paths[number];
    if (path === undefined) throw new RangeError(`no path has the number ${number}`);
    return path;
  };

  return {
    use(text) {
      const known = numbers.get(text);
      if (known !== undefined) {
        at(known).uses++;
        return known;
      }
      const bytes = PLAIN.test(text) ? undefined : executablePathBytes(text);
      const number = unused.pop() ?? paths.length;
      paths[number] = { text, byteLength: bytes?.length ?? text.length, bytes, uses: 1 };
      numbers.set(text, number);
      return number;
    },
    release(number) {
      const path = at(number);
      path.uses--;
      if (path.uses > 0) return;
      numbers.delete(path.text);
      paths[number] = undefined;
      unused.push(number);
    },
    text: (number) => at(number).text,
    byteLength: (number) => at(number).byteLength,
    write(number, into, offset) {
      const { text, bytes } = at(number);
      if (bytes === undefined) into.write(text, offset, 'latin1');
      else into.set(bytes, offset);
    },
    get size() {
      return numbers.size;
    },
  };
}
