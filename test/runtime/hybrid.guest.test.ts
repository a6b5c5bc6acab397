import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { before, it } from 'node:test';
import { enforcedSuite } from './enforced-suite.ts';
import { mustBeDenied, mustRun } from './expectations.ts';
import { restartContainer } from './pod.ts';

const PAUSE = '/opt/test/pause';

enforcedSuite('field 30: a node with cgroups of version 1 and 2', (suite) => {
  before(moveControllersToVersionOne);

  it('is one', async () => {
    assert.ok((await stat('/sys/fs/cgroup/memory/cgroup.procs')).isFile());
    assert.ok((await stat('/sys/fs/cgroup/unified/cgroup.procs')).isFile());
  });

  for (const runtime of ['runc', 'crun'] as const) {
    it(`binds containers of ${runtime}`, async () => {
      const policy = `hybrid-${runtime}`;
      await suite.enforcer.apply({
        name: policy,
        mode: 'protect',
        allowed: { main: [PAUSE, '/usr/bin/ls'] },
      });
      const containers = [{ name: 'main', command: [PAUSE] }];
      await suite.withPod(policy, { name: policy, runtime, containers }, async (pod) => {
        const check = async (): Promise<void> => {
          await mustRun(suite.cri, pod, 'main', ['/usr/bin/ls']);
          await mustBeDenied(suite.cri, pod, 'main', ['/usr/bin/id']);
        };
        await check();
        await restartContainer(suite.cri, pod, 'main');
        await check();
        await suite.enforcer.agent.signal('SIGKILL');
        await check();
        await suite.enforcer.restart();
        await check();
      });
    });
  }
});

/** crun refuses a node on which version 2 has a controller left; systemd's layout leaves it none. */
async function moveControllersToVersionOne(): Promise<void> {
  const left = await readFile('/sys/fs/cgroup/unified/cgroup.controllers', 'utf8');
  for (const controller of left.split(/\s+/).filter((name) => name !== '')) {
    const directory = `/sys/fs/cgroup/${controller}`;
    await mkdir(directory, { recursive: true });
    execFileSync('mount', ['-t', 'cgroup', '-o', controller, 'cgroup', directory]);
  }
}
