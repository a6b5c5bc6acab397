import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SCRIPT, SYMLINK } from '../images/toolbox.ts';
import { enforcedSuite } from './enforced-suite.ts';
import { mustBeDenied, mustRun } from './expectations.ts';
import { awaitExit, execIn, startContainer } from './pod.ts';

const PAUSE = '/opt/test/pause';
const MAIN = { name: 'main', command: [PAUSE] };

enforcedSuite('what a list means', (suite) => {
  const { cri, withPod } = suite;
  const runtime = 'crun';

  it('a container that the policy does not name is free', async () => {
    await suite.enforcer.apply({ name: 'unlisted-allow', mode: 'protect', allowed: { main: [PAUSE] } });
    const containers = [MAIN, { name: 'sidecar', command: [PAUSE] }];
    await withPod('unlisted-allow', { name: 'unlisted-allow', runtime, containers }, async (pod) => {
      await mustRun(cri, pod, 'sidecar', ['/usr/bin/id']);
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    });
  });

  it('field 41: unlistedContainers deny closes a container that joins later', async () => {
    await suite.enforcer.apply({
      name: 'unlisted-deny',
      mode: 'protect',
      unlistedContainers: 'deny',
      allowed: { main: [PAUSE] },
    });
    await withPod('unlisted-deny', { name: 'unlisted-deny', runtime, containers: [MAIN] }, async (pod) => {
      const debug = await startContainer(cri, pod, {
        name: 'debugger',
        command: ['/usr/bin/printf', 'ran'],
      }).catch(() => undefined);
      if (debug !== undefined) assert.notEqual((await awaitExit(cri, debug.id)).exitCode, 0);
      await suite.enforcer.violation({
        podName: 'unlisted-deny',
        containerName: 'debugger',
        reason: 'UnlistedContainer',
      });
    });
  });

  it('an empty list allows nothing', async () => {
    await suite.enforcer.apply({ name: 'empty', mode: 'monitor', allowed: { main: [] } });
    await withPod('empty', { name: 'empty', runtime, containers: [MAIN] }, async (pod) => {
      await suite.enforcer.violation({ podName: 'empty', executablePath: PAUSE, action: 'monitor' });
      await suite.enforcer.apply({ name: 'empty', mode: 'protect', allowed: { main: [] } });
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    });
  });

  it('field 6, 7, 8, 11: the file counts, however it is named', async () => {
    await suite.enforcer.apply({
      name: 'names',
      mode: 'protect',
      allowed: { main: [PAUSE, '/bin/sh', '/opt/test/attack', '/opt/test/tiny', '/usr/bin/ls', SCRIPT] },
    });
    await withPod('names', { name: 'names', runtime, containers: [MAIN] }, async (pod) => {
      await mustRun(cri, pod, 'main', [SYMLINK, '/home']);
      await mustRun(cri, pod, 'main', ['/opt/test/attack', 'relative', '/usr/bin', './ls']);
      await mustRun(cri, pod, 'main', ['/opt/test/attack', 'execveat', '/opt/test', 'tiny']);
      assert.equal(await mustRun(cri, pod, 'main', [SCRIPT]), 'greeted\n');
      const relative = await execIn(cri, pod, 'main', ['/opt/test/attack', 'relative', '/usr/bin', './cat']);
      assert.equal(relative.started && relative.exitCode, 66);
    });
  });

  it('field 7: a listed symbolic link allows nothing', async () => {
    await suite.enforcer.apply({ name: 'link', mode: 'protect', allowed: { main: [PAUSE, SYMLINK] } });
    await withPod('link', { name: 'link', runtime, containers: [MAIN] }, async (pod) => {
      await mustBeDenied(cri, pod, 'main', [SYMLINK]);
    });
  });

  it('field 13: known gap: a listed busybox is every one of its applets', async () => {
    await suite.enforcer.apply({
      name: 'busybox',
      mode: 'protect',
      allowed: { main: [PAUSE, '/bin/busybox'] },
    });
    await withPod('busybox', { name: 'busybox', runtime, containers: [MAIN] }, async (pod) => {
      assert.equal(await mustRun(cri, pod, 'main', ['/bin/busybox', 'id', '-u']), '0\n');
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    });
  });

  it('field 1, 3: deep and long paths are exact', async () => {
    const deep = `${'/level'.repeat(30)}/tool`;
    const long = `/${'l'.repeat(250)}/${'m'.repeat(250)}/tool`;
    await suite.enforcer.apply({
      name: 'paths',
      mode: 'protect',
      allowed: { main: [PAUSE, '/bin/sh', '/usr/bin/mkdir', '/usr/bin/cp', deep, long] },
    });
    await withPod('paths', { name: 'paths', runtime, containers: [MAIN] }, async (pod) => {
      for (const path of [deep, long]) {
        const directory = path.slice(0, path.lastIndexOf('/'));
        await mustRun(cri, pod, 'main', ['/usr/bin/mkdir', '-p', directory]);
        for (const name of ['tool', 'tooth'])
          await mustRun(cri, pod, 'main', ['/usr/bin/cp', '/opt/test/marker', `${directory}/${name}`]);
        assert.equal(await mustRun(cri, pod, 'main', [path]), 'marker: ran\n');
        await mustBeDenied(cri, pod, 'main', [`${directory}/tooth`]);
      }
    });
  });

  it('field 20: a name that is not UTF-8 is denied, reported in a reversible form, and breaks nothing', async () => {
    await suite.enforcer.apply({
      name: 'bytes',
      mode: 'protect',
      allowed: { main: [PAUSE, '/bin/sh', '/usr/bin/cp'] },
    });
    await withPod('bytes', { name: 'bytes', runtime, containers: [MAIN] }, async (pod) => {
      const script = 'f=$(printf \'/tmp/\\377\'); /usr/bin/cp /opt/test/marker "$f" && "$f"';
      const shell = await execIn(cri, pod, 'main', ['/bin/sh', '-c', script]);
      assert.ok(shell.started);
      assert.equal(shell.exitCode, 126);
      assert.doesNotMatch(shell.stdout, /marker/);
      await suite.enforcer.violation({ podName: 'bytes', executablePath: '/tmp/\\xff' });
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
    });
  });
});
