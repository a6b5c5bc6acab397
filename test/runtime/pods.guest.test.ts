import assert from 'node:assert/strict';
import { readFile, readdir, stat } from 'node:fs/promises';
import { after, describe, it } from 'node:test';
import { openCri } from './cri.ts';
import {
  awaitExit,
  containerCgroup,
  containerLog,
  containerOf,
  execIn,
  removePod,
  restartContainer,
  runPod,
} from './pod.ts';

const PAUSE = ['/opt/test/pause'];

const cri = openCri();
after(() => cri.close());

describe('a guest starts pods through containerd as kubelet would', () => {
  for (const runtime of ['runc', 'crun'] as const) {
    it(`with ${runtime}: several containers, exec, logs, restart, removal`, async () => {
      const pod = await runPod(cri, {
        name: `pods-${runtime}`,
        runtime,
        containers: [
          { name: 'first', command: ['/usr/bin/printf', 'ready\\n'], init: true },
          { name: 'main', command: PAUSE },
          { name: 'tenant', command: PAUSE, runAsUser: 1000, env: { GREETING: 'hello' } },
        ],
      });
      const cgroup = containerCgroup(pod, 'main');
      try {
        assert.equal(await containerLog(pod, 'first'), 'ready\n');
        assert.ok((await stat(cgroup)).isDirectory());

        const listed = await execIn(cri, pod, 'main', ['ls', '/home']);
        assert.deepEqual(listed, { started: true, exitCode: 0, stdout: 'tenant\n', stderr: '' });
        const identity = await execIn(cri, pod, 'tenant', [
          'sh',
          '-c',
          '/usr/bin/id -u; echo $GREETING; exit 3',
        ]);
        assert.deepEqual(identity, { started: true, exitCode: 3, stdout: '1000\nhello\n', stderr: '' });
        const missing = await execIn(cri, pod, 'main', ['/nowhere']);
        assert.equal(missing.started, false);

        const before = containerOf(pod, 'main').id;
        await restartContainer(cri, pod, 'main');
        assert.notEqual(containerOf(pod, 'main').id, before);
        assert.equal((await execIn(cri, pod, 'main', ['/usr/bin/true'])).started, true);
      } finally {
        await removePod(cri, pod);
      }
      await assert.rejects(stat(cgroup), { code: 'ENOENT' });
    });
  }

  it("with the host's processes in sight where a pod asks for it", async () => {
    const pod = await runPod(cri, {
      name: 'host-pid',
      hostPid: true,
      containers: [{ name: 'main', command: PAUSE, privileged: true }],
    });
    try {
      const own = await execIn(cri, pod, 'main', ['cat', `/proc/${process.pid}/comm`]);
      assert.equal(own.started && own.stdout, await readFile('/proc/self/comm', 'utf8'));
    } finally {
      await removePod(cri, pod);
    }
  });

  it('says how a container ended', async () => {
    const pod = await runPod(cri, {
      name: 'ends',
      containers: [{ name: 'main', command: ['/bin/sh', '-c', 'exit 9'] }],
    });
    try {
      assert.equal((await awaitExit(cri, containerOf(pod, 'main').id)).exitCode, 9);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('and leaves nothing behind', async () => {
    const { items } = await cri.call('ListPodSandbox', {});
    assert.deepEqual(items, []);
    const pods = await readdir('/sys/fs/cgroup/kubepods/besteffort', { withFileTypes: true });
    assert.deepEqual(
      pods.filter((entry) => entry.isDirectory()),
      [],
    );
  });
});
