/** What a shell takes as it is. */
const PLAIN = /^[\w@%+=:,./-]+$/;

/** Whether a shell takes a text as one word, and as nothing else, without quotes. */
export function isPlainWord(text: string): boolean {
  return PLAIN.test(text);
}

/** A word of a command that somebody is told to type, so that a shell reads it as one. */
export function shellWord(text: string): string {
  return isPlainWord(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
