const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Text of unknown origin, made safe to print on one line of a terminal: every control, direction and other invisible
 * character is written as `\u{…}`. What is printable stays as it is.
 */
export function escapeUnprintable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/**
 * JSON, or YAML whose unusual texts are quoted as in JSON, made safe to print: invisible characters other than line
 * ends become `\u` escapes, which both read as the same characters.
 */
export function escapeInQuotes(document: string): string {
  return document.replace(UNPRINTABLE, (character) =>
    character === '\n'
      ? character
      : Array.from(
          { length: character.length },
          (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
        ).join(''),
  );
}
