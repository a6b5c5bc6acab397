import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { it } from 'node:test';
import { enforcedSuite } from './enforced-suite.ts';
import { mustBeDenied, mustRun } from './expectations.ts';
import { restartContainer } from './pod.ts';

const PAUSE = '/opt/test/pause';

enforcedSuite('field 30: a node with cgroups of version 1 and 2', (suite) => {
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
