import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseWorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { parse } from 'yaml';
import { policyYaml, removePolicy, writePolicy } from './policy-files.ts';

it('writes policies that the product takes', () => {
  const text = policyYaml({
    name: 'shop',
    namespace: 'web',
    mode: 'protect',
    unlistedContainers: 'deny',
    otherMountNamespaces: 'unchecked',
    allowed: { main: ['/bin/sh'], init: [] },
  });
  expect(parseWorkloadPolicy(parse(text))).toMatchObject({
    ok: true,
    value: {
      metadata: { name: 'shop', namespace: 'web' },
      spec: { mode: 'protect', unlistedContainers: 'deny' },
    },
  });
});

it('leaves nothing but whole files in the directory', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'policy-files-'));
  try {
    await writePolicy(directory, { name: 'one', mode: 'monitor', allowed: { main: [] } });
    await writePolicy(directory, { name: 'one', mode: 'protect', allowed: { main: [] } });
    expect(await readdir(directory)).toEqual(['one.yaml']);
    expect(await readFile(join(directory, 'one.yaml'), 'utf8')).toContain('mode: protect');
    await removePolicy(directory, 'one');
    expect(await readdir(directory)).toEqual([]);
  } finally {
    await rm(directory, { recursive: true });
  }
});
