import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { enforcedSuite } from './enforced-suite.ts';
import { DENIED, mustBeDenied, mustRun } from './expectations.ts';
import {
  awaitExit,
  containerCgroup,
  containerLog,
  execIn,
  removePod,
  restartContainer,
  runPod,
  runSandbox,
  startContainer,
  type PodSpec,
} from './pod.ts';

const PAUSE = '/opt/test/pause';
const MAIN = { name: 'main', command: [PAUSE] };

enforcedSuite('binding', (suite) => {
  const { cri, withPod } = suite;
  for (const runtime of ['runc', 'crun'] as const) {
    describe(`with ${runtime}`, () => {
      it('field 26, 38: entrypoint, exec and probes of a container are checked from its start', async () => {
        const policy = `all-${runtime}`;
        await suite.enforcer.apply({
          name: policy,
          mode: 'protect',
          allowed: { main: [PAUSE, '/bin/sh', '/usr/bin/ls'] },
        });
        await withPod(policy, { name: policy, runtime, containers: [MAIN] }, async (pod) => {
          assert.equal(await mustRun(cri, pod, 'main', ['ls', '/home']), 'tenant\n');
          await mustBeDenied(cri, pod, 'main', ['id']);
          const shell = await execIn(cri, pod, 'main', ['/bin/sh', '-c', '/usr/bin/ls /home; /usr/bin/id']);
          assert.ok(shell.started);
          assert.equal(shell.stdout, 'tenant\n');
          assert.match(shell.stderr, DENIED);
          assert.equal(shell.exitCode, 126);
          const line = await suite.enforcer.violation({ podName: policy, executablePath: '/usr/bin/id' });
          assert.deepEqual(
            { ...line, occurrences: 0 },
            {
              ...line,
              namespace: 'default',
              policyName: policy,
              containerName: 'main',
              action: 'protect',
              reason: 'Unlisted',
              origin: 'exec',
              occurrences: 0,
            },
          );
        });
      });

      it('field 38: an entrypoint that is not listed never runs', async () => {
        const policy = `entrypoint-${runtime}`;
        await suite.enforcer.apply({ name: policy, mode: 'protect', allowed: { main: [PAUSE] } });
        const command = ['/usr/bin/printf', 'ran'];
        const pod = await runSandbox(cri, {
          name: policy,
          runtime,
          labels: { [POLICY_LABEL]: policy },
          containers: [],
        });
        try {
          // runc has started the container by then, and its init fails; crun fails the start.
          const started = await startContainer(cri, pod, { name: 'main', command }).catch(() => undefined);
          if (started !== undefined) assert.notEqual((await awaitExit(cri, started.id)).exitCode, 0);
          assert.doesNotMatch(await containerLog(pod, 'main').catch(() => ''), /^ran/m);
          await suite.enforcer.violation({
            podName: policy,
            executablePath: '/usr/bin/printf',
            action: 'protect',
            origin: 'entrypoint',
          });
        } finally {
          await removePod(cri, pod);
        }
      });

      it('field 24: each container of a pod has its own list, also after a restart of one', async () => {
        const policy = `several-${runtime}`;
        await suite.enforcer.apply({
          name: policy,
          mode: 'protect',
          allowed: { one: [PAUSE, '/usr/bin/ls'], two: [PAUSE, '/usr/bin/id'] },
        });
        const containers = [
          { name: 'one', command: [PAUSE] },
          { name: 'two', command: [PAUSE] },
        ];
        await withPod(policy, { name: policy, runtime, containers }, async (pod) => {
          const check = async (): Promise<void> => {
            await mustRun(cri, pod, 'one', ['/usr/bin/ls']);
            await mustBeDenied(cri, pod, 'one', ['/usr/bin/id']);
            await mustRun(cri, pod, 'two', ['/usr/bin/id']);
            await mustBeDenied(cri, pod, 'two', ['/usr/bin/ls']);
          };
          await check();
          await restartContainer(cri, pod, 'one');
          await check();
        });
      });

      it('field 39: init containers are checked by their own rules', async () => {
        const policy = `init-${runtime}`;
        await suite.enforcer.apply({
          name: policy,
          mode: 'protect',
          allowed: { prepare: ['/bin/sh', '/usr/bin/ls'], main: [PAUSE] },
        });
        const prepare = {
          name: 'prepare',
          command: ['/bin/sh', '-c', '/usr/bin/ls /home && ! /usr/bin/id'],
          init: true,
        };
        await withPod(policy, { name: policy, runtime, containers: [prepare, MAIN] }, async (pod) => {
          const log = await containerLog(pod, 'prepare');
          assert.match(log, /^tenant$/m);
          assert.match(log, DENIED);
          await mustBeDenied(cri, pod, 'main', ['/usr/bin/ls']);
        });
      });

      it('a container that names an unknown policy is refused, and starts once the policy is there', async () => {
        const policy = `late-${runtime}`;
        const pod = await runSandbox(cri, {
          name: policy,
          runtime,
          labels: { [POLICY_LABEL]: policy },
          containers: [],
        });
        try {
          await assert.rejects(startContainer(cri, pod, MAIN), (error: Error) => {
            assert.match(error.message, new RegExp(`${policy}/main`));
            assert.match(error.message, /prevented from starting by runtime-enforcer/);
            assert.match(
              error.message,
              new RegExp(
                `pod default/${policy} has policy ${policy} associated, but the policy does not exist`,
              ),
            );
            return true;
          });
          await suite.enforcer.apply({ name: policy, mode: 'protect', allowed: { main: [PAUSE] } });
          await startContainer(cri, pod, MAIN);
          await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
        } finally {
          await removePod(cri, pod);
        }
      });
    });
  }

  const runtime = 'crun';

  it('field 22, 23: nothing of a removed container sticks to the next one', async () => {
    await suite.enforcer.apply({ name: 'gone', mode: 'protect', allowed: { main: [PAUSE] } });
    for (let round = 0; round < 5; round++) {
      await withPod('gone', { name: `gone-${round}`, runtime, containers: [MAIN] }, async (pod) => {
        await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      });
      const free = await runPod(cri, { name: `free-${round}`, runtime, containers: [MAIN] });
      try {
        await mustRun(cri, free, 'main', ['/usr/bin/id']);
      } finally {
        await removePod(cri, free);
      }
    }
  });

  it('field 34: a static pod is bound, whose cgroup is named by the hash of its file and not by its uid', async () => {
    await suite.enforcer.apply({ name: 'static', mode: 'protect', allowed: { main: [PAUSE] } });
    const cgroupName = '7c0f6ba1b5e0d4d0e3a8a1f2c3d4e5f6';
    const annotations = {
      'kubernetes.io/config.hash': cgroupName,
      'kubernetes.io/config.source': 'file',
    };
    const spec = { name: 'static', runtime, cgroupName, annotations, containers: [MAIN] } as const;
    await withPod('static', spec, async (pod) => {
      assert.match(containerCgroup(pod, 'main'), new RegExp(`/pod${cgroupName}/`));
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    });
  });

  it('a policy binds only in its own namespace', async () => {
    await suite.enforcer.apply({
      name: 'elsewhere',
      namespace: 'other',
      mode: 'protect',
      allowed: { main: [PAUSE] },
    });
    await withPod(
      'elsewhere',
      { name: 'elsewhere', namespace: 'other', runtime, containers: [MAIN] },
      async (pod) => {
        await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      },
    );
    const labels = { [POLICY_LABEL]: 'elsewhere' };
    await assert.rejects(
      runPod(cri, { name: 'elsewhere', labels, runtime, containers: [MAIN] }),
      /the policy does not exist/,
    );
  });

  it('an empty policy label names no policy', async () => {
    await withPod('', { name: 'empty-label', runtime, containers: [MAIN] }, async (pod) => {
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
    });
  });

  it('names and labels that are not what they claim never end the agent', async () => {
    const hostile: readonly PodSpec[] = [
      { name: 'a', labels: { 'pod-template-hash': 'abcdefghij' }, containers: [MAIN] },
      { name: 'b', labels: { 'controller-revision-hash': 'x' }, containers: [MAIN] },
      { name: 'c', labels: { 'statefulset.kubernetes.io/pod-name': 'nodash' }, containers: [MAIN] },
      { name: 'd', labels: { 'batch.kubernetes.io/job-name': '', 'job-name': '-' }, containers: [MAIN] },
      {
        name: 'e'.repeat(300),
        namespace: '../../etc',
        labels: { 'pod-template-hash': '../..' },
        containers: [MAIN],
      },
    ];
    for (const spec of hostile) {
      const pod = await runPod(cri, { ...spec, runtime });
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      await removePod(cri, pod);
    }
    const labels = { [POLICY_LABEL]: '../../etc/passwd' };
    await assert.rejects(
      runPod(cri, { name: 'f', labels, runtime, containers: [MAIN] }),
      /prevented from starting/,
    );
    await suite.enforcer.apply({ name: 'still-here', mode: 'protect', allowed: { main: [PAUSE] } });
    await withPod('still-here', { name: 'still-here', runtime, containers: [MAIN] }, async (pod) => {
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    });
    assert.equal(suite.enforcer.agent.exitCode, undefined);
  });
});
