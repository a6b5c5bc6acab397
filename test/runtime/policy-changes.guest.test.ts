import assert from 'node:assert/strict';
import { it } from 'node:test';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { enforcedSuite } from './enforced-suite.ts';
import { mustBeDenied, mustRun } from './expectations.ts';
import { containerOf, runPod } from './pod.ts';
import { stormCounts } from './storm.ts';

const PAUSE = '/opt/test/pause';
const MAIN = { name: 'main', command: [PAUSE] };

enforcedSuite('policies that change', (suite) => {
  const { cri, withPod } = suite;
  const runtime = 'crun';

  it('field 25: a new list, a new mode and a new container reach running containers', async () => {
    await suite.enforcer.apply({ name: 'edit', mode: 'protect', allowed: { main: [PAUSE] } });
    const containers = [MAIN, { name: 'second', command: [PAUSE] }];
    await withPod('edit', { name: 'edit', runtime, containers }, async (pod) => {
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      await mustRun(cri, pod, 'second', ['/usr/bin/id']);
      await suite.enforcer.apply({
        name: 'edit',
        mode: 'protect',
        allowed: { main: [PAUSE, '/usr/bin/id'], second: [PAUSE] },
      });
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      await mustBeDenied(cri, pod, 'second', ['/usr/bin/id']);
      await suite.enforcer.apply({ name: 'edit', mode: 'monitor', allowed: { main: [PAUSE] } });
      await mustRun(cri, pod, 'main', ['/usr/bin/ls']);
      await mustRun(cri, pod, 'second', ['/usr/bin/id']);
      await suite.enforcer.violation({ podName: 'edit', executablePath: '/usr/bin/ls', action: 'monitor' });
    });
  });

  it('a broken edit keeps the last good policy and says which file, line and field', async () => {
    await suite.enforcer.apply({ name: 'broken', mode: 'protect', allowed: { main: [PAUSE] } });
    await withPod('broken', { name: 'broken', runtime, containers: [MAIN] }, async (pod) => {
      const from = suite.enforcer.agent.log.length;
      await suite.enforcer.write(
        'broken',
        'apiVersion: runtimeenforcer.kubewarden.io/v1alpha1\nkind: WorkloadPolicy\nmetadata:\n  name: broken\nspec:\n  mode: enforce\n',
      );
      await suite.enforcer.agent.waitForText(['broken.yaml:6', 'spec.mode'], from);
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    });
  });

  it('a removed policy keeps its list for pods that run, and refuses new ones', async () => {
    await suite.enforcer.apply({
      name: 'removed',
      mode: 'protect',
      allowed: { main: [PAUSE, '/usr/bin/ls'] },
    });
    await withPod('removed', { name: 'removed', runtime, containers: [MAIN] }, async (pod) => {
      await suite.enforcer.remove('removed');
      await suite.enforcer.agent.waitFor({ msg: 'policy removed', policy: 'default/removed' });
      await mustRun(cri, pod, 'main', ['/usr/bin/ls']);
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      const labels = { [POLICY_LABEL]: 'removed' };
      await assert.rejects(
        runPod(cri, { name: 'removed-too', labels, runtime, containers: [MAIN] }),
        /the policy does not exist/,
      );
    });
  });

  it('field 50, 77: a denied command never gets through, and its noise hides no other violation', async () => {
    await suite.enforcer.apply({
      name: 'noise',
      mode: 'protect',
      allowed: { main: [PAUSE, '/opt/test/execstorm'] },
    });
    await withPod('noise', { name: 'noise', runtime, containers: [MAIN] }, async (pod) => {
      const storm = await mustRun(cri, pod, 'main', [
        '/opt/test/execstorm',
        '--seconds',
        '25',
        '--count',
        '2000',
        '/usr/bin/touch',
        '/opt/test/tiny',
      ]);
      const counts = stormCounts(storm, '/usr/bin/touch');
      assert.deepEqual({ ...counts, denied: 0 }, { ran: 0, denied: 0, other: 0 });
      assert.ok(counts.denied >= 500, storm);
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/whoami']);
      await suite.enforcer.violation({ podName: 'noise', executablePath: '/usr/bin/whoami' });
      // Repeats are counted, not written one by one.
      const lines = (await suite.enforcer.violations()).filter(({ podName }) => podName === 'noise');
      assert.ok(lines.length < 50, `${lines.length} lines for three different violations`);
      assert.equal(containerOf(pod, 'main').attempt, 0);
    });
  });
});
