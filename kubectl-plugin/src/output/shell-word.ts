/** What a shell takes as it is. */
const PLAIN = /^[\w@%+=:,./-]+$/;

/** A word of a command that somebody is told to type, so that a shell reads it as one. */
export function shellWord(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
