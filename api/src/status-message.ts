import { MAX_MESSAGE_CHARACTERS } from './limits.ts';
import { escapeUnprintable } from './printable-text.ts';

/** Text of unknown origin as a message of a status: on one line, and not longer than the CRDs allow. */
export function statusMessage(text: string): string {
  const escaped = escapeUnprintable(text.slice(0, MAX_MESSAGE_CHARACTERS * 2));
  const characters = Array.from(escaped);
  if (characters.length <= MAX_MESSAGE_CHARACTERS) return escaped;
  return `${characters.slice(0, MAX_MESSAGE_CHARACTERS - 1).join('')}…`;
}
