import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../src/tree/root.ts';
import { commandReference, withReference } from './command-reference.ts';

describe('docs/plugin.md', () => {
  it('has every command as it is (node kubectl-plugin/documentation/write.ts)', async () => {
    const document = await readFile(join(import.meta.dirname, '../../docs/plugin.md'), 'utf8');
    expect(document).toBe(withReference(document, ROOT));
  });
});

describe('commandReference', () => {
  it('tells operands, options and examples of each command, and nothing of a group', () => {
    const reference = commandReference({
      name: 'x',
      summary: 'x',
      subcommands: [
        {
          name: 'group',
          summary: 'A group',
          subcommands: [
            {
              name: 'do',
              summary: 'Do it',
              operands: [{ name: 'A' }, { name: 'B', optional: true, repeated: true }],
              options: [{ flags: '--fast', help: 'at once' }],
              examples: [['group do a', 'does it']],
              load: async () => await Promise.reject(new Error('not to be loaded')),
            },
          ],
        },
      ],
    });
    expect(reference).toBe(
      '### `group do A [B...]`\n\nDo it.\n\n- `--fast`: at once\n\n```console\n# does it\n' +
        'kubectl runtime-enforcer group do a\n```\n\n',
    );
  });
});
