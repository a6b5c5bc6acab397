import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PRODUCT, PRODUCT_LABEL } from '@runtime-enforcer/agent/containers/own-pods';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { runAgentCommand } from './agent-process.ts';
import { restartContainerd } from './containerd-process.ts';
import type { Cri } from './cri.ts';
import { enforcedSuite } from './enforced-suite.ts';
import { eventually } from './eventually.ts';
import { mustBeDenied, mustRun } from './expectations.ts';
import { execIn, removePod, runPod, type Pod, type PodSpec } from './pod.ts';
import { stormCounts } from './storm.ts';

const PAUSE = '/opt/test/pause';
const MAIN = { name: 'main', command: [PAUSE] };
/** A container that started unasked is bound this long after the connection is there again. */
const BOUND_LATE_BUDGET_MS = 1_000;
/** A guest's clock runs slower than its promises where two of them share the machine. */
const SLOW_GUEST_FACTOR = 5;
const MANY_CONTAINERS = 40;
/** containerd's request timeout is 2 s. */
const LONGER_THAN_NRI_WAITS_MS = 3_000;

const OWN_POD_UID = '7d1c9c1e-5a0b-4f43-9a53-0c1b2f7a9d10';
const OWN_NAMESPACE = 'enforcer-system';
const PRODUCT_LABELS = { [PRODUCT_LABEL]: PRODUCT };
const runtime = 'crun';

async function labelled(cri: Cri, name: string, policy: string): Promise<Pod> {
  return await runPod(cri, { name, runtime, labels: { [POLICY_LABEL]: policy }, containers: [MAIN] });
}

async function deniedSoon(cri: Cri, pod: Pod): Promise<void> {
  await eventually(
    `an exec in ${pod.spec.name} is denied`,
    async () => ((await execIn(cri, pod, 'main', ['/usr/bin/id'])).started ? undefined : true),
    BOUND_LATE_BUDGET_MS * SLOW_GUEST_FACTOR,
  );
}

enforcedSuite("the agent's life", (suite) => {
  const { cri } = suite;

  it('field 62, 83: a killed agent leaves enforcement on, and the next one adopts it', async () => {
    await suite.enforcer.apply({
      name: 'killed',
      mode: 'protect',
      allowed: { main: [PAUSE, '/usr/bin/ls'] },
    });
    const pod = await labelled(cri, 'killed', 'killed');
    try {
      await suite.enforcer.agent.signal('SIGKILL');
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      await mustRun(cri, pod, 'main', ['/usr/bin/ls']);
      await suite.enforcer.restart();
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      await mustRun(cri, pod, 'main', ['/usr/bin/ls']);
      await suite.enforcer.apply({
        name: 'killed',
        mode: 'protect',
        allowed: { main: [PAUSE, '/usr/bin/id'] },
      });
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/ls']);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('field 50: a denied loop never succeeds while the agent is killed and started', async () => {
    await suite.enforcer.apply({
      name: 'loop',
      mode: 'protect',
      allowed: { main: [PAUSE, '/opt/test/execstorm'] },
    });
    const pod = await labelled(cri, 'loop', 'loop');
    try {
      const storm = mustRun(cri, pod, 'main', ['/opt/test/execstorm', '--seconds', '12', '/opt/test/tiny']);
      for (let round = 0; round < 2; round++) {
        await suite.enforcer.agent.signal('SIGKILL');
        await suite.enforcer.restart();
      }
      const counts = stormCounts(await storm, '/opt/test/tiny');
      assert.deepEqual({ ...counts, denied: 0 }, { ran: 0, denied: 0, other: 0 });
      assert.ok(counts.denied > 100, `only ${counts.denied} attempts`);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('field 40: containers that started without an agent are bound within a second of its return, and reported', async () => {
    await suite.enforcer.apply({ name: 'late', mode: 'protect', allowed: { main: [PAUSE] } });
    await suite.enforcer.agent.signal('SIGTERM');
    // Not listed, and runs as long as the pod does.
    const main = { name: 'main', command: ['/usr/bin/sleep', '100000'] };
    const labels = { [POLICY_LABEL]: 'late' };
    const pod = await runPod(cri, { name: 'late', runtime, labels, containers: [main] });
    try {
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      const agent = await suite.enforcer.restart();
      await deniedSoon(cri, pod);
      const report = await agent.waitFor({ msg: 'bound a container that started without us' });
      assert.match(JSON.stringify(report), /late/);
      assert.match(JSON.stringify(report), /\/usr\/bin\/sleep/);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('field 56: an agent that answers too late is cut off, comes back, and binds what it missed', async () => {
    await suite.enforcer.apply({ name: 'slow', mode: 'protect', allowed: { main: [PAUSE] } });
    await suite.enforcer.agent.signal('SIGSTOP');
    const starting = labelled(cri, 'slow', 'slow');
    await new Promise((resolve) => setTimeout(resolve, LONGER_THAN_NRI_WAITS_MS));
    await suite.enforcer.agent.signal('SIGCONT');
    const pod = await starting;
    try {
      await deniedSoon(cri, pod);
      const next = await labelled(cri, 'slow-next', 'slow');
      await mustBeDenied(cri, next, 'main', ['/usr/bin/id']);
      await removePod(cri, next);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('field 60, 65: after a restart of containerd old containers stay bound and new ones are', async () => {
    await suite.enforcer.apply({ name: 'containerd', mode: 'protect', allowed: { main: [PAUSE] } });
    const pod = await labelled(cri, 'containerd-old', 'containerd');
    try {
      const before = suite.enforcer.agent.log.length;
      await restartContainerd();
      await suite.enforcer.agent.waitFor({ msg: 'connected to the container runtime' }, 30_000, before);
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      const next = await labelled(cri, 'containerd-new', 'containerd');
      await mustBeDenied(cri, next, 'main', ['/usr/bin/id']);
      await removePod(cri, next);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('field 57: containers that start while the agent connects are bound', async () => {
    await suite.enforcer.apply({ name: 'racing', mode: 'protect', allowed: { main: [PAUSE] } });
    await suite.enforcer.agent.signal('SIGTERM');
    const pods: Pod[] = [];
    try {
      const restarting = suite.enforcer.restart();
      for (let each = 0; each < 5; each++) pods.push(await labelled(cri, `racing-${each}`, 'racing'));
      await restarting;
      for (const pod of pods) await deniedSoon(cri, pod);
    } finally {
      for (const pod of pods) await removePod(cri, pod);
    }
  });

  it('field 63: an agent takes over many containers at once', async () => {
    const names = Array.from({ length: MANY_CONTAINERS }, (_, index) => `c${index}`);
    const allowed = Object.fromEntries(names.map((name) => [name, [PAUSE]]));
    await suite.enforcer.apply({ name: 'many', mode: 'protect', allowed });
    await suite.enforcer.agent.signal('SIGTERM');
    const containers = names.map((name) => ({ name, command: [PAUSE] }));
    const pod = await runPod(cri, { name: 'many', runtime, labels: { [POLICY_LABEL]: 'many' }, containers });
    try {
      await suite.enforcer.restart();
      for (const name of [names[0], names.at(-1)]) await mustBeDenied(cri, pod, name ?? '', ['/usr/bin/id']);
      assert.equal(suite.enforcer.agent.exitCode, undefined);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('a container whose policy comes later is bound then, also one that started unasked', async () => {
    await suite.enforcer.agent.signal('SIGTERM');
    const pod = await labelled(cri, 'dangling', 'dangling');
    try {
      await suite.enforcer.restart();
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      await suite.enforcer.apply({ name: 'dangling', mode: 'protect', allowed: { main: [PAUSE] } });
      await deniedSoon(cri, pod);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('override holds the node at monitor, and release takes everything off, with and without an agent', async () => {
    await suite.enforcer.apply({ name: 'broken-glass', mode: 'protect', allowed: { main: [PAUSE] } });
    const pod = await labelled(cri, 'broken-glass', 'broken-glass');
    const command = async (...args: string[]): Promise<void> => {
      const { exitCode, stderr } = await runAgentCommand(args);
      assert.equal(exitCode, 0, stderr);
    };
    try {
      await command('override', '--mode', 'monitor');
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      await command('override', '--mode', 'clear');
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      await suite.enforcer.agent.signal('SIGKILL');
      await command('override', '--mode', 'off');
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      await command('override', '--mode', 'clear');
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      await command('release');
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      await command('resume');
      await suite.enforcer.restart();
      await deniedSoon(cri, pod);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('an orderly stop keeps enforcement, or releases it where that is asked for', async () => {
    await suite.enforcer.apply({ name: 'stopped', mode: 'protect', allowed: { main: [PAUSE] } });
    const pod = await labelled(cri, 'stopped', 'stopped');
    try {
      await suite.enforcer.agent.signal('SIGTERM');
      assert.equal(suite.enforcer.agent.exitCode, 0);
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      await suite.enforcer.restart(['--on-exit', 'release']);
      await mustBeDenied(cri, pod, 'main', ['/usr/bin/id']);
      await suite.enforcer.agent.signal('SIGTERM');
      assert.equal(suite.enforcer.agent.exitCode, 0);
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
    } finally {
      await suite.enforcer.restart();
      await removePod(cri, pod);
    }
  });
});

enforcedSuite(
  'an agent that fails open',
  (suite) => {
    it('lets a container start that names an unknown policy, warns, and binds it when the policy comes', async () => {
      const pod = await labelled(suite.cri, 'fails-open', 'fails-open');
      try {
        await mustRun(suite.cri, pod, 'main', ['/usr/bin/id']);
        await suite.enforcer.agent.waitForText(['"level":"warn"', 'nriFailopen=true']);
        await suite.enforcer.apply({ name: 'fails-open', mode: 'protect', allowed: { main: [PAUSE] } });
        await deniedSoon(suite.cri, pod);
      } finally {
        await removePod(suite.cri, pod);
      }
    });
  },
  { env: { NRI_FAILOPEN: 'true' } },
);

enforcedSuite(
  "the product's own pods",
  (suite) => {
    /** None of the pods is held to the policy, and none waits for one that is not there. */
    const neverBound = async (pod: Pick<PodSpec, 'uid' | 'namespace' | 'labels'>): Promise<void> => {
      for (const policy of ['own', 'own-system', 'nobody-has-this-one']) {
        const started = await runPod(suite.cri, {
          ...{ ...pod, name: 'product', runtime, containers: [MAIN] },
          labels: { ...pod.labels, [POLICY_LABEL]: policy },
        });
        try {
          await mustRun(suite.cri, started, 'main', ['/usr/bin/id']);
        } finally {
          await removePod(suite.cri, started);
        }
      }
    };
    const isBound = async (pod: Pick<PodSpec, 'namespace' | 'labels'>): Promise<void> => {
      const spec = { ...pod, name: 'tenant', runtime, containers: [MAIN] } as const;
      await suite.withPod(pod.namespace === undefined ? 'own' : 'own-system', spec, async (started) => {
        await mustBeDenied(suite.cri, started, 'main', ['/usr/bin/id']);
      });
    };

    it('field 66: are never bound, and never wait for a policy', async () => {
      const rules = { mode: 'protect', allowed: { main: [PAUSE] } } as const;
      await suite.enforcer.apply({ name: 'own', ...rules });
      await suite.enforcer.apply({ name: 'own-system', namespace: OWN_NAMESPACE, ...rules });
      await neverBound({ uid: OWN_POD_UID });
      await neverBound({ namespace: OWN_NAMESPACE, labels: PRODUCT_LABELS });
    });

    it('field 66: are not those that only claim it: the label elsewhere, or another pod beside them', async () => {
      await isBound({});
      await isBound({ labels: PRODUCT_LABELS });
      await isBound({ namespace: OWN_NAMESPACE });
    });
  },
  { env: { POD_UID: OWN_POD_UID, POD_NAMESPACE: OWN_NAMESPACE } },
);
