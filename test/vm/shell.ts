/** A word that a POSIX shell reads back as exactly this text. */
export function shellQuote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/**
 * A shell script that becomes the given program with the given environment added.
 *
 * @throws RangeError for a variable name that a shell cannot export, or a NUL anywhere
 */
export function shellScript(argv: readonly string[], env: Readonly<Record<string, string>>): string {
  const exports = Object.entries(env).map(([name, value]) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new RangeError(`env: ${JSON.stringify(name)} is not a name that a shell can export`);
    }
    return `export ${name}=${shellQuote(value)}\n`;
  });
  const script = `${exports.join('')}exec ${argv.map(shellQuote).join(' ')}\n`;
  if (script.includes('\0')) throw new RangeError('command and env must not hold a NUL');
  return script;
}
