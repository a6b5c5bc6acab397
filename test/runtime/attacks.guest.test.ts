import assert from 'node:assert/strict';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { enforcedSuite } from './enforced-suite.ts';
import { execIn, removePod, runPod, type ContainerSpec, type Pod } from './pod.ts';

const PAUSE = '/opt/test/pause';
const ATTACK = '/opt/test/attack';
/** What the attacker wants to run; it prints that it ran. */
const FORBIDDEN = '/opt/test/marker';
/** The same program on the node: static, so it runs wherever its file is found. */
const FORBIDDEN_ON_NODE = '/run/payload/marker';
/** A listed path that some attacks imitate. */
const LISTED = '/opt/test/tiny';
/** A directory of the node in which the forbidden program stands under the listed path. */
const IMITATION = '/run/imitation';
const IMITATION_IN_CONTAINER = '/imitation';
const HOST_CGROUPS = '/host-cgroups';
const RAN = 0;
const DENIED = 66;
const HOST_INIT = '1';

/** Each in a privileged container that shares the node's processes and sees its cgroup tree. */
const ATTACKS: readonly (readonly [name: string, ...argv: string[]])[] = [
  ['plain', 'plain', FORBIDDEN],
  ['field 6: a relative path', 'relative', '/opt/test', './marker'],
  ['execveat with a directory', 'execveat', '/opt/test', 'marker'],
  ['execveat with an empty path', 'fexecve', FORBIDDEN],
  ['field 16: a memory file named as a listed path', 'memfd', FORBIDDEN, LISTED],
  ['field 16: a sealed memory file, as runc has', 'memfd-sealed', FORBIDDEN],
  ['an unlinked file', 'unlinked', FORBIDDEN, '/tmp/unlinked'],
  ['a file without a name', 'unnamed', FORBIDDEN, '/tmp'],
  ['chroot', 'chroot', IMITATION_IN_CONTAINER, LISTED],
  ['a detached mount', 'open-tree', IMITATION_IN_CONTAINER, LISTED.slice(1)],
  ['a detached mount that is closed', 'open-tree-closed', IMITATION_IN_CONTAINER, LISTED.slice(1)],
  ['a bind mount in a namespace of its own', 'user-bind', FORBIDDEN, LISTED],
  ['chroot in a user namespace', 'user-chroot', IMITATION_IN_CONTAINER, LISTED],
  ['a root of its own in a user namespace', 'user-pivot', IMITATION_IN_CONTAINER, LISTED],
  ['a detached mount in a user namespace', 'user-open-tree', IMITATION_IN_CONTAINER, LISTED.slice(1)],
  ['a file system that is mounted nowhere', 'user-fsmount', FORBIDDEN, 'tiny'],
  ['field 36: the mount namespace of the node', 'setns', HOST_INIT, '/usr/bin/id'],
  ['field 36: the same by an orphan', 'setns-orphan', HOST_INIT, '/usr/bin/id'],
  ["another process's root", 'plain', `/proc/${HOST_INIT}/root${FORBIDDEN_ON_NODE}`],
  ['an orphan', 'orphan', FORBIDDEN],
  ['a vforked child', 'vfork', FORBIDDEN],
  ["a vforked child of the parent's", 'vfork-sibling', FORBIDDEN],
  ['a thread', 'thread', FORBIDDEN],
  ['field 29: leaving the cgroup', 'leave-cgroup', HOST_CGROUPS, FORBIDDEN],
];

const CONTAINER: ContainerSpec = {
  name: 'main',
  command: [PAUSE],
  privileged: true,
  mounts: [
    { hostPath: IMITATION, containerPath: IMITATION_IN_CONTAINER },
    { hostPath: '/sys/fs/cgroup', containerPath: HOST_CGROUPS },
  ],
};

enforcedSuite('attacks from inside a container', (suite) => {
  for (const [mode, expected] of [
    ['monitor', RAN],
    ['protect', DENIED],
  ] as const) {
    describe(mode === 'protect' ? 'are denied' : 'work where they are only watched', () => {
      let pod: Pod;
      before(async () => {
        await prepareImitation();
        const name = `attacks-${mode}`;
        await suite.enforcer.apply({
          name,
          mode,
          allowed: { main: [PAUSE, ATTACK, LISTED, '/opt/test/cgroups'] },
        });
        pod = await runPod(suite.cri, {
          name,
          runtime: 'crun',
          hostPid: true,
          labels: { [POLICY_LABEL]: name },
          containers: [CONTAINER],
        });
      });
      after(async () => await removePod(suite.cri, pod));

      for (const [name, ...argv] of ATTACKS) {
        it(name, async () => assert.equal(await exitCode(suite.cri, pod, [ATTACK, ...argv]), expected));
      }

      it('field 28: a nested cgroup', async () => {
        const argv = ['/opt/test/cgroups', 'nested', ownCgroup(pod), '3', FORBIDDEN];
        assert.equal(await exitCode(suite.cri, pod, argv), expected);
      });

      it('field 29: a child that starts in a cgroup beside the pod', async () => {
        const beside = `/beside-${mode}`;
        await mkdir(`/sys/fs/cgroup${beside}`, { recursive: true });
        const argv = ['/opt/test/cgroups', 'into', `${HOST_CGROUPS}${beside}`, FORBIDDEN];
        assert.equal(await exitCode(suite.cri, pod, argv), expected);
      });

      it('what is listed runs on', async () => {
        assert.equal(await exitCode(suite.cri, pod, [ATTACK, 'plain', LISTED]), RAN);
        assert.equal(await exitCode(suite.cri, pod, [ATTACK, 'leave-cgroup', HOST_CGROUPS, LISTED]), RAN);
      });

      it('known gap: a bind mount over a listed program in the same namespace runs', async () => {
        assert.equal(await exitCode(suite.cri, pod, [ATTACK, 'bind-over', FORBIDDEN, LISTED]), RAN);
      });
    });
  }

  it('field 17: known gap: a listed program that is overwritten in place runs', async () => {
    const name = 'overwritten';
    await suite.enforcer.apply({ name, mode: 'protect', allowed: { main: [PAUSE, ATTACK, LISTED] } });
    await suite.withPod(
      name,
      { name, runtime: 'crun', containers: [{ name: 'main', command: [PAUSE] }] },
      async (pod) => {
        const overwritten = await execIn(suite.cri, pod, 'main', [ATTACK, 'overwrite', FORBIDDEN, LISTED]);
        assert.equal(overwritten.started && overwritten.stdout, 'marker: ran\n');
      },
    );
  });

  it('a container without any right can do none of it', async () => {
    const name = 'tenant';
    await suite.enforcer.apply({ name, mode: 'protect', allowed: { main: [PAUSE, ATTACK, LISTED] } });
    const containers = [{ name: 'main', command: [PAUSE], runAsUser: 1000 }];
    await suite.withPod(name, { name, runtime: 'crun', containers }, async (pod) => {
      for (const argv of [
        ['user-bind', FORBIDDEN, LISTED],
        ['user-fsmount', FORBIDDEN, 'tiny'],
        ['memfd', FORBIDDEN, LISTED],
        ['vfork-sibling', FORBIDDEN],
      ]) {
        assert.equal(await exitCode(suite.cri, pod, [ATTACK, ...argv]), DENIED, argv.join(' '));
      }
    });
  });
});

async function prepareImitation(): Promise<void> {
  const imitation = `${IMITATION}${LISTED}`;
  await mkdir(dirname(imitation), { recursive: true });
  await copyFile(FORBIDDEN_ON_NODE, imitation);
}

async function exitCode(
  cri: Parameters<typeof execIn>[0],
  pod: Pod,
  argv: readonly string[],
): Promise<number | string> {
  const execution = await execIn(cri, pod, 'main', argv);
  if (!execution.started) return execution.reason;
  // What was not attempted proves nothing: its message belongs into the test's.
  return execution.exitCode === RAN || execution.exitCode === DENIED
    ? execution.exitCode
    : `${execution.exitCode}: ${execution.stdout}${execution.stderr}`;
}

/** The container's own cgroup as it sees it below the mounted tree of the node. */
function ownCgroup(pod: Pod): string {
  const id = pod.containers.get('main')?.id ?? '';
  return `${HOST_CGROUPS}/kubepods/besteffort/pod${pod.uid}/${id}`;
}
