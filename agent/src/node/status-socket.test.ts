import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatStatus, type AgentStatus } from './agent-status.ts';
import { askStatus, createStatusSocket } from './status-socket.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'status-'));
});
afterEach(async () => rm(directory, { recursive: true }));

const STATUS: AgentStatus = {
  ...{ version: '0.1.0', pid: 12, nodeName: 'node-1', startedAt: '2026-01-01T00:00:00.000Z', attached: true },
  attachment: {
    ...{
      programs: ['check_lsm'],
      kind: 'lsm',
      reason: 'r',
      kernel: '6.12.0',
      pathBytesMax: 4095,
      adopted: 'fresh',
    },
  },
  ...{ override: 'none', nriConnected: true, outcomes: { denied: 3, allowed: 0 }, recursionMisses: 0 },
  policies: [{ name: 'shop/web', state: 'ready', mode: 'protect', paths: 4, digest: 'd' }],
  containers: [
    {
      ...{ namespace: 'shop', podName: 'web-1', containerName: 'main', containerId: 'c1' },
      ...{ state: 'enforced', policy: 'shop/web', violations: 3 },
    },
  ],
};

describe('the status of a running agent', () => {
  it('is told to whoever asks, and only root may', async () => {
    const socket = createStatusSocket(directory, () => Promise.resolve(STATUS));
    await socket.start();
    expect(await Promise.all([askStatus(directory), askStatus(directory)])).toEqual([STATUS, STATUS]);
    expect((await stat(join(directory, 'agent.sock'))).mode & 0o777).toBe(0o600);
    await socket.stop();
    expect(await askStatus(directory)).toBeUndefined();
  });

  it('takes the place of what a killed agent left', async () => {
    await writeFile(join(directory, 'agent.sock'), '');
    const socket = createStatusSocket(directory, () => Promise.resolve({}));
    await socket.start();
    expect(await askStatus(directory)).toEqual({});
    await socket.stop();
  });

  it('tells why it cannot be told', async () => {
    const socket = createStatusSocket(directory, () => Promise.reject(new Error('the map is closed')));
    await socket.start();
    await expect(askStatus(directory)).rejects.toThrow('does not tell its status: the map is closed');
    await socket.stop();
  });

  it('is not taken from somebody who speaks otherwise', async () => {
    const server = createServer((socket) => socket.end('hello'));
    await new Promise<void>((resolve) => server.listen(join(directory, 'agent.sock'), resolve));
    await expect(askStatus(directory)).rejects.toThrow('does not tell its status');
    server.close();
  });

  it('needs a directory for its socket', async () => {
    const socket = createStatusSocket(join(directory, 'x'.repeat(120)), () => Promise.resolve({}));
    await expect(socket.start()).rejects.toThrow('--state-dir names a directory with a short path');
    await socket.stop();
  });
});

describe('the status for people', () => {
  it('says what is enforced, and what is wrong', () => {
    const text = formatStatus(STATUS);
    expect(text).toContain('lsm (check_lsm), fresh');
    expect(text).toMatch(/shop\/web +ready +protect +4 paths/);
    expect(text).toMatch(/shop\/web-1\/main +enforced +shop\/web +3 violations/);
    expect(text).toMatch(/denied +3/);
    expect(text).not.toContain('allowed');
    const degraded = { ...STATUS.attachment, degraded: 'boot with lsm=…,bpf' };
    const worse = formatStatus({
      ...{ ...STATUS, attachment: degraded, attached: false, nriConnected: false, recursionMisses: 7 },
      ...{ policies: [], containers: [] },
    });
    for (const part of ['taken off this node', 'boot with', 'start unasked', 'did not check: 7', 'none']) {
      expect(worse).toContain(part);
    }
  });

  it('shows names that are none in a harmless way', () => {
    const [container] = STATUS.containers;
    const hostile = { ...container, podName: '\u001b[2Jx', containerName: 'a\nb', policy: 'shop/\u202e' };
    const text = formatStatus({ ...STATUS, containers: [hostile] as AgentStatus['containers'] });
    expect(text.includes('\u001b') || text.includes('\u202e')).toBe(false);
    expect(text).toContain('"a\\nb"');
  });

  it('is bounded', () => {
    const containers = Array.from({ length: 5000 }, () => STATUS.containers).flat();
    const text = formatStatus({ ...STATUS, containers });
    expect(text.split('\n').length).toBeLessThan(300);
    expect(text).toContain('and 4800 more; --json lists all');
  });
});
