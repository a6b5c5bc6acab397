import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { fileDigest } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { krewValidator } from './krew-validator.ts';
import { PLUGIN_DIRECTORY } from './package-plugin.ts';

const OUTPUT = join(PLUGIN_DIRECTORY, '..');

describe('npm run package', () => {
  it('makes a program that runs where there is nothing else', async () => {
    const program = join(PLUGIN_DIRECTORY, 'kubectl-runtime_enforcer');
    const env = { PATH: '/nonexistent', HOME: '/nonexistent', NODE_OPTIONS: '' };
    const version = await runHostCommand(['/usr/bin/env', '-i', 'PATH=/nonexistent', program, '--version'], {
      env,
    });
    expect(version).toMatch(/^\d+\.\d+\.\d+\n$/);
    const libraries = await runHostCommand(['ldd', program]);
    expect(libraries).not.toContain('not found');
  });

  it('makes an archive with what krew and a person need, and its checksum', async () => {
    const [archive = ''] = (await readdir(OUTPUT)).filter((name) => name.endsWith('.tar.gz'));
    const names = (await runHostCommand(['tar', '-tzf', join(OUTPUT, archive)])).trimEnd().split('\n');
    expect(names).toEqual([
      'kubectl-runtime_enforcer',
      'kubectl_complete-runtime_enforcer',
      'LICENSE',
      'THIRD-PARTY-LICENSES',
    ]);
    const sums = await readFile(join(OUTPUT, 'SHA256SUMS'), 'utf8');
    expect(sums).toBe(`${await fileDigest(join(OUTPUT, archive))}  ${archive}\n`);
    const licenses = await readFile(join(PLUGIN_DIRECTORY, 'THIRD-PARTY-LICENSES'), 'utf8');
    for (const name of ['@kubernetes/client-node', 'undici', 'commander', 'yaml'])
      expect(licenses).toContain(`${name} `);
  });

  it("makes a manifest that krew's own validator takes, with the archive's checksum", async () => {
    const manifest = join(OUTPUT, 'runtime-enforcer.yaml');
    await runHostCommand([await krewValidator(printProgress), '-manifest', manifest, '-skip-install']);
    const [sum = ''] = (await readFile(join(OUTPUT, 'SHA256SUMS'), 'utf8')).split(' ');
    // YAML quotes a sum that begins like a number.
    const { spec } = parse(await readFile(manifest, 'utf8')) as {
      readonly spec: { readonly platforms: readonly { readonly sha256: string }[] };
    };
    expect(spec.platforms.map(({ sha256 }) => sha256)).toEqual([sum]);
  });
});
