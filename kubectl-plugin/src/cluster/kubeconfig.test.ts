import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PluginError } from '../plugin-error.ts';
import { readKubeconfig } from './kubeconfig.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  await write('first', {
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://first', 'certificate-authority': 'ca.crt' } }],
    users: [
      { name: 'u', user: { tokenFile: 'token', as: 'b', 'as-groups': ['g'], 'as-user-extra': { k: ['v'] } } },
      { name: 'e', user: { exec: { command: './login', apiVersion: 'v1' } } },
    ],
  });
  await write('second', {
    'current-context': 'z',
    clusters: [
      { name: 'c', cluster: { server: 'https://second' } },
      { name: 'd', cluster: { server: 'https://d' } },
    ],
  });
  await writeFile(join(directory, 'broken'), 'a: [');
  await writeFile(join(directory, 'empty'), '');
});
afterAll(async () => await rm(directory, { recursive: true }));

const write = async (name: string, config: object) =>
  await writeFile(join(directory, name), JSON.stringify(config));
const read = (...names: readonly string[]) =>
  readKubeconfig(undefined, { KUBECONFIG: names.map((name) => join(directory, name)).join(':') });

describe('readKubeconfig', () => {
  it('lets the first of several files win, and passes over what is not there', () => {
    const config = read('missing', 'first', 'second');
    expect(config.currentContext).toBe('a');
    expect(config.clusters.map(({ name, server }) => [name, server])).toEqual([
      ['c', 'https://first'],
      ['d', 'https://d'],
    ]);
    expect(config.files).toHaveLength(2);
  });

  it('takes paths from where the file stands', () => {
    const { clusters, users } = read('first');
    expect(clusters[0]?.caFile).toBe(join(directory, 'ca.crt'));
    expect(JSON.stringify(users[0]?.user)).toContain(join(directory, 'token'));
    expect(JSON.stringify(users[1]?.user)).toContain(join(directory, 'login'));
  });

  it('reads whom to act as', () => {
    expect(read('first').users[0]?.impersonation).toEqual({
      user: 'b',
      groups: ['g'],
      extra: new Map([['k', ['v']]]),
    });
  });

  it('says which file cannot be read', () => {
    expect(() => read('broken')).toThrow(PluginError);
    expect(() => read('broken')).toThrow('broken');
    expect(() => readKubeconfig(join(directory, 'missing'), {})).toThrow('cannot be read (ENOENT)');
    expect(read('empty').clusters).toEqual([]);
    expect(readKubeconfig(undefined, { HOME: directory }).files).toEqual([]);
  });
});
