import { type ExecutablePath, parseExecutablePath } from '@runtime-enforcer/api/executable-path';
import { formatFieldError, quote } from '@runtime-enforcer/api/field-error';
import { UsageError } from './plugin-error.ts';

/** What stands for each byte of an argument that is not UTF-8, once Node has read it. */
const REPLACEMENT = '\uFFFD';

/** The path of an executable, as somebody types it. Throws a UsageError. */
export function executableArgument(text: string): ExecutablePath {
  if (text.includes(REPLACEMENT)) {
    throw new UsageError(
      `${quote(text)} holds bytes that are not UTF-8`,
      String.raw`write each of them as \xHH, in quotes: '/opt/\xff'`,
    );
  }
  const path = parseExecutablePath(text);
  if (path.ok) return path.value;
  throw new UsageError(path.errors.map(formatFieldError).join('; '));
}
