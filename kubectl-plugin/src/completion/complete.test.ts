import { describe, expect, it } from 'vitest';
import type { CommandContext } from '../command-context.ts';
import { ROOT } from '../tree/root.ts';
import { complete } from './complete.ts';

/** A cluster with one policy, whose violations have these paths. */
function context(paths: readonly string[]): CommandContext {
  const violations = paths.map((executablePath, id) => ({ id, containerName: 'app', executablePath }));
  const policy = {
    ...{ apiVersion: 'v1', kind: 'WorkloadPolicy', metadata: { name: 'web', namespace: 'shop' } },
    ...{ spec: { rulesByContainer: { app: {} } }, status: { violations } },
  };
  const request = async () => await Promise.resolve(policy);
  const connection = { client: { request }, namespace: 'shop' };
  return { connect: async () => await Promise.resolve(connection) } as unknown as CommandContext;
}

const completed = async (paths: readonly string[], ...words: readonly string[]): Promise<string> =>
  await complete(words, ROOT, () => context(paths));

describe('complete', () => {
  it('offers what there is, with a directive at the end', async () => {
    expect(await completed(['/usr/bin/ps'], 'policy', 'allow', 'web', 'app', '')).toBe('/usr/bin/ps\n:4\n');
    expect(await completed(['/usr/bin/ps'], 'policy', 'ack', 'web', '')).toMatch(
      /^0\t.*\/usr\/bin\/ps.*\n:4\n$/,
    );
  });

  it('never offers what a shell would take for more than a word', async () => {
    const hostile = [
      '/$(id)',
      '/a b',
      '/`id`',
      '/;id',
      "/'",
      '/"',
      '/>x',
      '/\\xff',
      '/*',
      '/~',
      '/a\nb',
      '/\u202e',
    ];
    const words = ['policy', 'allow', 'web', 'app', ''];
    expect(await completed([...hostile, '/usr/bin/ps'], ...words)).toBe('/usr/bin/ps\n:4\n');
  });

  it('shows nothing that a terminal acts on', async () => {
    const shown = await completed(['/\u001b]52;c;eA==\u0007\u2028\u202e'], 'policy', 'ack', 'web', '');
    expect(shown).toMatch(/^0\t/);
    expect(shown.replaceAll(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  });

  it('has nothing to offer where the cluster cannot be asked', async () => {
    const connect = async () => await Promise.reject(new Error('no cluster'));
    const broken = { connect } as unknown as CommandContext;
    expect(await complete(['policy', 'ack', 'web', ''], ROOT, () => broken)).toBe(':4\n');
  });
});
