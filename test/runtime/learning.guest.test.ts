import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { parse } from 'yaml';
import { runAgentCommand } from './agent-process.ts';
import { enforcedSuite, type EnforcedSuite } from './enforced-suite.ts';
import { eventually } from './eventually.ts';
import { mustBeDenied, mustRun } from './expectations.ts';
import { execIn, removePod, runPod, type PodSpec } from './pod.ts';

const PAUSE = '/opt/test/pause';
const MAX_LEARNED_PATHS = 100;
const runtime = 'crun';

interface ProposalFile {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly rulesByContainer: Readonly<
      Record<string, { readonly executables: { readonly allowed: readonly string[] } }>
    >;
  };
}

async function proposals(suite: EnforcedSuite): Promise<ReadonlyMap<string, ProposalFile>> {
  const found = new Map<string, ProposalFile>();
  for (const entry of await readdir(suite.enforcer.learnDirectory, {
    recursive: true,
    withFileTypes: true,
  })) {
    if (!entry.isFile() || !entry.name.endsWith('.yaml')) continue;
    const file = join(entry.parentPath, entry.name);
    found.set(file, parse(await readFile(file, 'utf8')) as ProposalFile);
  }
  return found;
}

/** Waits for the proposal whose name holds the text until it lists all the paths, and returns its file. */
async function learned(
  suite: EnforcedSuite,
  text: string,
  container: string,
  paths: readonly string[],
): Promise<string> {
  return await eventually(`a proposal for ${text} lists ${paths.join(', ')}`, async () => {
    for (const [file, proposal] of await proposals(suite)) {
      const allowed = proposal.spec.rulesByContainer[container]?.executables.allowed ?? [];
      if (proposal.metadata.name.includes(text) && paths.every((path) => allowed.includes(path))) return file;
    }
    return undefined;
  });
}

/** A pod as a Deployment's ReplicaSet makes it. */
function deploymentPod(workload: string, script: string): PodSpec {
  return {
    name: `${workload}-5d59d67564-x2k8p`,
    runtime,
    labels: { 'pod-template-hash': '5d59d67564', app: workload },
    containers: [{ name: 'main', command: ['/bin/sh', '-c', script] }],
  };
}

enforcedSuite('learning', (suite) => {
  const { cri } = suite;

  it('field 52: what a workload was seen to start is what it needs: learned, promoted, protected, it works', async () => {
    const spec = deploymentPod('shop', '/usr/bin/id; /usr/bin/ls /home; exec /opt/test/pause');
    const pod = await runPod(cri, spec);
    await mustRun(cri, pod, 'main', ['/usr/bin/cat', '/etc/passwd']);
    const needed = ['/bin/sh', '/usr/bin/id', '/usr/bin/ls', PAUSE, '/usr/bin/cat'];
    const file = await learned(suite, 'shop', 'main', needed);
    await removePod(cri, pod);

    const promoted = await runAgentCommand(['promote', file, '--mode', 'protect']);
    assert.equal(promoted.exitCode, 0, promoted.stderr);
    const { metadata } = parse(promoted.stdout) as ProposalFile;
    await suite.enforcer.write(metadata.name, promoted.stdout);
    await suite.enforcer.agent.waitFor({ msg: 'policy loaded', policy: `default/${metadata.name}` });
    await suite.withPod(metadata.name, spec, async (bound) => {
      assert.match(await mustRun(cri, bound, 'main', ['/usr/bin/cat', '/etc/passwd']), /tenant/);
      await mustBeDenied(cri, bound, 'main', ['/usr/bin/whoami']);
    });
    const own = (await suite.enforcer.violations()).filter(({ policyName }) => policyName === metadata.name);
    assert.deepEqual(
      own.map(({ executablePath }) => executablePath),
      ['/usr/bin/whoami'],
    );
  });

  it('field 44, 49: what ends at once is learned all the same', async () => {
    const pod = await runPod(cri, deploymentPod('brief', '/usr/bin/true; exec /usr/bin/env'));
    await removePod(cri, pod);
    await learned(suite, 'brief', 'main', ['/bin/sh', '/usr/bin/true', '/usr/bin/env']);
  });

  it('field 42: an agent that is killed while it learns goes on where it was', async () => {
    const pod = await runPod(cri, deploymentPod('interrupted', 'exec /opt/test/pause'));
    try {
      await mustRun(cri, pod, 'main', ['/usr/bin/id']);
      await learned(suite, 'interrupted', 'main', ['/usr/bin/id']);
      await suite.enforcer.agent.signal('SIGKILL');
      await suite.enforcer.restart();
      await mustRun(cri, pod, 'main', ['/usr/bin/ls']);
      await learned(suite, 'interrupted', 'main', ['/bin/sh', '/usr/bin/id', '/usr/bin/ls', PAUSE]);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('what already runs when learning begins is learned too', async () => {
    await suite.enforcer.agent.signal('SIGTERM');
    const pod = await runPod(cri, deploymentPod('early', 'exec /opt/test/pause'));
    try {
      await suite.enforcer.restart();
      await learned(suite, 'early', 'main', [PAUSE]);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('field 43, 47: random paths fill a proposal up to its limit, and learning elsewhere goes on', async () => {
    const fill =
      'i=0; while [ $i -lt 130 ]; do f=/tmp/tool-$i; /usr/bin/ln /opt/test/tiny $f; $f; i=$((i+1)); done; exec /opt/test/pause';
    const pod = await runPod(cri, deploymentPod('random', fill));
    try {
      const file = await eventually(
        'the proposal is full',
        async () => {
          for (const [path, { metadata, spec }] of await proposals(suite)) {
            const count = spec.rulesByContainer['main']?.executables.allowed.length ?? 0;
            if (metadata.name.includes('random') && count >= MAX_LEARNED_PATHS) return path;
          }
          return undefined;
        },
        60_000,
      );
      const other = await runPod(cri, deploymentPod('beside', 'exec /opt/test/pause'));
      await learned(suite, 'beside', 'main', [PAUSE]);
      await removePod(cri, other);
      const full = parse(await readFile(file, 'utf8')) as ProposalFile;
      assert.equal(full.spec.rulesByContainer['main']?.executables.allowed.length, MAX_LEARNED_PATHS);
      assert.match(await readFile(file, 'utf8'), /type: Full/);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('memory and unlinked files never get into a proposal', async () => {
    const pod = await runPod(cri, deploymentPod('hidden', 'exec /opt/test/pause'));
    try {
      for (const argv of [
        ['memfd', '/opt/test/marker', '/usr/bin/imitated'],
        ['unlinked', '/opt/test/marker', '/tmp/unlinked'],
      ]) {
        const attack = await execIn(cri, pod, 'main', ['/opt/test/attack', ...argv]);
        assert.equal(attack.started && attack.stdout, 'marker: ran\n');
      }
      const file = await learned(suite, 'hidden', 'main', ['/opt/test/attack']);
      assert.doesNotMatch(await readFile(file, 'utf8'), /imitated|unlinked|memfd|deleted/);
    } finally {
      await removePod(cri, pod);
    }
  });

  it('containers that a policy names are not learned', async () => {
    await suite.enforcer.apply({ name: 'listed', mode: 'monitor', allowed: { main: [PAUSE] } });
    const labels = { [POLICY_LABEL]: 'listed' };
    const pod = await runPod(cri, { ...deploymentPod('bound', 'exec /opt/test/pause'), labels });
    await mustRun(cri, pod, 'main', ['/usr/bin/id']);
    await suite.enforcer.violation({ policyName: 'listed', executablePath: '/usr/bin/id' });
    await removePod(cri, pod);
    const names = [...(await proposals(suite)).values()].map(({ metadata }) => metadata.name);
    assert.deepEqual(
      names.filter((name) => name.includes('bound')),
      [],
    );
  });
});
