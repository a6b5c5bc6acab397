import { fieldError, quote, type Parsed, type PathSegment } from './field-error.ts';

declare const executablePath: unique symbol;

/**
 * The path of an executable as the kernel resolves it (symlinks followed, from the top of the container's mount
 * tree), in the one text form that the product writes: equal bytes are equal texts, so `===` compares bytes.
 */
export type ExecutablePath = string & { readonly [executablePath]: true };

/**
 * What the kernel found behind an exec. Only a `file` can be on a list: a `deleted` one has no name any more, a
 * `memfd` never had one, a `foreignMount` is a mount outside the task's mount namespace, which imitates any path.
 */
export type ExecutableKind = 'file' | 'deleted' | 'memfd' | 'foreignMount';

/** PATH_MAX of Linux without the terminating NUL. */
export const MAX_PATH_BYTES = 4095;
/** Longest text form: an escaped byte takes four characters. */
export const MAX_PATH_TEXT_CHARACTERS = 4 * MAX_PATH_BYTES;
/** Display prefix of a file that exists only in memory. */
export const MEMFD_PREFIX = '/memfd:';
/** Display suffix of a file that has no name any more. */
export const DELETED_SUFFIX = ' (deleted)';

const EXPECTED = 'an absolute path of 2 to 4,095 bytes, as the kernel resolves it';
/** One or more components behind a slash each, none of them `.` or `..`. */
const WELL_FORMED = /^(?:\/(?!\.{1,2}(?:\/|$))[^/]+)+$/;
const PLAIN_ASCII = /^[ -[\]-~]*$/;
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;
const TOKEN = /\\\\|\\x[0-9a-fA-F]{2}|[^\\]/uy;

const encoder = new TextEncoder();
// Without ignoreBOM a leading U+FEFF would be dropped, and two names would look the same.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Reads a path as a user or a resource writes it. Bytes that are not printable UTF-8 are written `\xHH`, a
 * backslash `\\`; printable ASCII must stand for itself, so that an escape cannot hide a `/` or a `.`.
 * @param at where the text stands, for the errors
 */
export function parseExecutablePath(text: string, at: readonly PathSegment[] = []): Parsed<ExecutablePath> {
  if (text.length <= MAX_PATH_BYTES && PLAIN_ASCII.test(text)) return checkRules(text, text.length, at);
  if (text.length > MAX_PATH_TEXT_CHARACTERS) {
    return refuse(at, { message: `the path is written in ${text.length} characters, too many for any path` });
  }
  const bytes = decode(text);
  if (!(bytes instanceof Uint8Array)) return refuse(at, bytes);
  return executablePathFromBytes(bytes, at);
}

/** Reads a path as the kernel reports it, without a terminating NUL. */
export function executablePathFromBytes(
  bytes: Uint8Array,
  at: readonly PathSegment[] = [],
): Parsed<ExecutablePath> {
  if (bytes.length > MAX_PATH_BYTES) return refuse(at, tooLong(bytes.length));
  if (bytes.includes(0)) return refuse(at, { message: 'the path holds a NUL byte' });
  return checkRules(encode(bytes), bytes.length, at);
}

/** The bytes that the kernel compares. */
export function executablePathBytes(path: ExecutablePath): Uint8Array {
  if (PLAIN_ASCII.test(path)) return encoder.encode(path);
  const bytes = decode(path);
  if (bytes instanceof Uint8Array) return bytes;
  throw new Error(`an ExecutablePath that no parser made: ${bytes.message}`);
}

/**
 * What people are shown for an exec, also for what can never be on a list: any bytes, whatever their length.
 * A memfd shows its name behind `/memfd:`, an unlinked file its last path before ` (deleted)`.
 */
export function displayExecutable(bytes: Uint8Array, kind: ExecutableKind): string {
  const text = encode(bytes);
  switch (kind) {
    case 'file':
    case 'foreignMount':
      return text;
    case 'deleted':
      return `${text}${DELETED_SUFFIX}`;
    case 'memfd':
      return text.startsWith(MEMFD_PREFIX) ? text : `${MEMFD_PREFIX}${text}`;
  }
}

interface Refusal {
  readonly message: string;
  readonly remedy?: string;
}

function refuse(at: readonly PathSegment[], refusal: Refusal): Parsed<never> {
  return { ok: false, errors: [fieldError(at, { expected: EXPECTED, ...refusal })] };
}

function tooLong(length: number): Refusal {
  return { message: `the path has ${length} bytes, ${length - MAX_PATH_BYTES} too many` };
}

function checkRules(text: string, byteLength: number, at: readonly PathSegment[]): Parsed<ExecutablePath> {
  const refusal = brokenRule(text, byteLength);
  return refusal === undefined ? { ok: true, value: text as ExecutablePath } : refuse(at, refusal);
}

function brokenRule(text: string, byteLength: number): Refusal | undefined {
  if (byteLength > MAX_PATH_BYTES) return tooLong(byteLength);
  if (WELL_FORMED.test(text) && !text.startsWith(MEMFD_PREFIX) && !text.endsWith(DELETED_SUFFIX))
    return undefined;
  if (!text.startsWith('/')) {
    return {
      message: text === '' ? 'the path is empty' : `${quote(text)} does not start with "/"`,
      remedy: 'write the full path from the root of the container, such as /usr/bin/ls',
    };
  }
  if (text === '/') return { message: '"/" is a directory', remedy: 'name one executable' };
  if (text.endsWith('/')) {
    return {
      message: `${quote(text)} ends with "/"`,
      remedy: 'name one executable; directories are not matched',
    };
  }
  if (text.includes('//')) return { message: `${quote(text)} holds "//"`, remedy: 'write one "/"' };
  const component = text.split('/').find((name) => name === '.' || name === '..');
  if (component !== undefined) {
    return {
      message: `${quote(text)} holds the component "${component}"`,
      remedy: 'write the path as realpath prints it',
    };
  }
  if (text.startsWith(MEMFD_PREFIX)) {
    return {
      message: `${quote(text)} is a file that exists only in memory`,
      remedy: 'remove it: its name is free for anyone to choose, so it can never be allowed',
    };
  }
  return {
    message: `${quote(text)} is a file that was deleted`,
    remedy: 'remove it: a deleted file can never be allowed; start the program from a file that stays',
  };
}

/** The reversible text form of any bytes: runs of valid UTF-8 as text, every other byte escaped. */
function encode(bytes: Uint8Array): string {
  let text = '';
  let runStart = 0;
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes, at);
    if (length === 0) {
      text += encodeUtf8(bytes.subarray(runStart, at)) + escapeByte(bytes[at] ?? 0);
      runStart = at + 1;
    }
    at += Math.max(length, 1);
  }
  return text + encodeUtf8(bytes.subarray(runStart));
}

/** Bytes of the valid UTF-8 sequence that starts at a place (RFC 3629, section 4); 0 if none does. */
function sequenceLength(bytes: Uint8Array, start: number): number {
  const lead = bytes[start] ?? 0;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  // The second byte also rules out overlong forms, surrogates, and what is beyond U+10FFFF.
  const [lowest, highest] = SECOND_BYTE_BOUNDS[lead] ?? [0x80, 0xbf];
  const second = bytes[start + 1] ?? 0;
  if (second < lowest || second > highest) return 0;
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (let index = 2; index < length; index++) {
    if (((bytes[start + index] ?? 0) & 0xc0) !== 0x80) return 0;
  }
  return length;
}

const SECOND_BYTE_BOUNDS: Readonly<Record<number, readonly [number, number]>> = {
  0xe0: [0xa0, 0xbf],
  0xed: [0x80, 0x9f],
  0xf0: [0x90, 0xbf],
  0xf4: [0x80, 0x8f],
};

function encodeUtf8(bytes: Uint8Array): string {
  if (bytes.length === 0) return '';
  const text = decoder.decode(bytes);
  return PLAIN_ASCII.test(text) ? text : Array.from(text, encodeCharacter).join('');
}

function encodeCharacter(character: string): string {
  if (character === '\\') return '\\\\';
  return UNPRINTABLE.test(character) ? Array.from(encoder.encode(character), escapeByte).join('') : character;
}

function escapeByte(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, '0')}`;
}

function decode(text: string): Uint8Array | Refusal {
  const bytes: number[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const start = TOKEN.lastIndex;
    const token = TOKEN.exec(text)?.[0];
    if (token === undefined) {
      return {
        message: `${quote(text.slice(start, start + 4))} is not an escape`,
        remedy: String.raw`write a backslash as \\ and an unprintable byte as \x and two hexadecimal digits`,
      };
    }
    if (token === '\\\\') {
      bytes.push(0x5c);
    } else if (token.startsWith('\\')) {
      const byte = Number.parseInt(token.slice(2), 16);
      if (byte === 0) return { message: 'the path holds a NUL byte' };
      if (byte >= 0x20 && byte < 0x7f) {
        const character = String.fromCharCode(byte);
        return {
          message: `${token} stands for the printable character ${quote(character)}`,
          remedy: `write ${character === '\\' ? String.raw`\\` : quote(character)} itself`,
        };
      }
      bytes.push(byte);
    } else if (UNPRINTABLE.test(token)) {
      return {
        message: `the path holds the unprintable character ${quote(token)}`,
        remedy: /\p{Cs}/u.test(token)
          ? 'write its bytes as \\xHH'
          : `write it as ${Array.from(encoder.encode(token), escapeByte).join('')}`,
      };
    } else {
      bytes.push(...encoder.encode(token));
    }
  }
  return Uint8Array.from(bytes);
}
