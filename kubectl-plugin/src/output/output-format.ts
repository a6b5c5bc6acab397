import { quote } from '@runtime-enforcer/api/field-error';
import { UsageError } from '../plugin-error.ts';

/** How a command prints what it found. */
export type OutputFormat =
  | { readonly kind: 'table'; readonly wide: boolean }
  | { readonly kind: 'json' | 'yaml' }
  | { readonly kind: 'name' }
  | { readonly kind: 'jsonpath'; readonly template: string };

export const OUTPUT_FORMATS = ['table', 'wide', 'json', 'yaml', 'name', 'jsonpath'] as const;

const JSON_PATH = 'jsonpath=';

/**
 * Reads the value of `-o`; undefined means a table.
 *
 * @param formats what the command can print
 * @throws UsageError
 */
export function parseOutputFormat(
  text: string | undefined,
  formats: readonly (typeof OUTPUT_FORMATS)[number][] = OUTPUT_FORMATS,
): OutputFormat {
  const name = text?.startsWith(JSON_PATH) === true ? 'jsonpath' : (text ?? 'table');
  const known = formats.find((format) => format === name);
  switch (known) {
    case 'table':
      return { kind: 'table', wide: false };
    case 'wide':
      return { kind: 'table', wide: true };
    case 'json':
    case 'yaml':
      return { kind: known };
    case 'name':
      return { kind: known };
    case 'jsonpath':
      if (text?.startsWith(JSON_PATH) === true) {
        return { kind: 'jsonpath', template: text.slice(JSON_PATH.length) };
      }
      throw new UsageError('invalid output "jsonpath": write the template behind it, as in jsonpath={.kind}');
    case undefined:
      throw new UsageError(`invalid output ${quote(text ?? '')}, expected ${expectation(formats)}`);
  }
}

function expectation(formats: readonly string[]): string {
  const quoted = formats.map((format) => `"${format}"`);
  return quoted.length === 1
    ? quoted.join('')
    : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1) ?? ''}`;
}
