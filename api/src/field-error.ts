import { escapeUnprintable } from './printable-text.ts';

/** One step into an object: a field or map key, or an index of a list. */
export type PathSegment = string | number;

/** What is wrong with one field of a resource, in words a user can act on. */
export interface FieldError {
  /** For people: `spec.rulesByContainer.app.executables.allowed[3]`; empty for the whole object. */
  readonly path: string;
  /** The same place for programs. */
  readonly segments: readonly PathSegment[];
  readonly message: string;
  readonly expected: string;
  /** What to do, when that does not follow from `expected`. */
  readonly remedy?: string;
}

/** A value, or every reason (at least one) why there is none. */
export type Parsed<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly errors: readonly FieldError[] };

const SHOWN_CHARACTERS = 80;
const PLAIN_KEY = /^[A-Za-z_][\w-]*$/;

/**
 * Text of unknown origin, made safe to print on one line: quoted, shortened to 80 characters, and with every
 * control, direction and other invisible character escaped.
 */
export function quote(text: string): string {
  // Cut by UTF-16 units first, so that a text of megabytes costs no more than a short one.
  const characters = Array.from(text.slice(0, 2 * SHOWN_CHARACTERS));
  const shortened = text.length > 2 * SHOWN_CHARACTERS || characters.length > SHOWN_CHARACTERS;
  const shown = escapeUnprintable(
    JSON.stringify(characters.slice(0, SHOWN_CHARACTERS).join('')).slice(1, -1),
  );
  return `"${shown}${shortened ? '…' : ''}"`;
}

/** The printed form of a field's place; keys that could be mistaken for syntax are quoted. */
export function formatFieldPath(segments: readonly PathSegment[]): string {
  return segments
    .map((segment, index) => {
      if (typeof segment === 'number') return `[${segment}]`;
      if (!PLAIN_KEY.test(segment) || segment.length > SHOWN_CHARACTERS) return `[${quote(segment)}]`;
      return index === 0 ? segment : `.${segment}`;
    })
    .join('');
}

export function fieldError(
  segments: readonly PathSegment[],
  text: { message: string; expected: string; remedy?: string },
): FieldError {
  return { path: formatFieldPath(segments), segments, ...text };
}

/** One line: `spec.mode: "blok" is not a mode; expected monitor or protect`. */
export function formatFieldError(error: FieldError): string {
  const place = error.path === '' ? '' : `${error.path}: `;
  const remedy = error.remedy === undefined ? '' : `; ${error.remedy}`;
  return `${place}${error.message}; expected ${error.expected}${remedy}`;
}
