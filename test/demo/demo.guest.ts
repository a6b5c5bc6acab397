import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { parse } from 'yaml';
import { runAgentCommand } from '../runtime/agent-process.ts';
import { openCri, type Cri } from '../runtime/cri.ts';
import { startEnforcer, type Enforcer } from '../runtime/enforcer.ts';
import { eventually } from '../runtime/eventually.ts';
import { execIn, removePod, runPod, type Execution, type Pod, type PodSpec } from '../runtime/pod.ts';
import { playToTheEnd } from './ending.ts';
import { narration, type Narration } from './narration.ts';

const CONTAINER = 'shop';
/** What the workload does all day; whole paths, as busybox's shell would run its tools in itself. */
const WORK = 'while true; do /usr/bin/date; /usr/bin/sleep 1; done';
const POD: PodSpec = {
  name: 'shop-5d59d67564-x2k8p',
  namespace: 'web',
  labels: { app: 'shop', 'pod-template-hash': '5d59d67564' },
  containers: [{ name: CONTAINER, command: ['/bin/sh', '-c', WORK] }],
};
const LISTED = '/usr/bin/date';
const UNLISTED = '/usr/bin/id';
const LEARNED = ['/bin/sh', LISTED, '/usr/bin/sleep'];

interface Scene {
  readonly tell: Narration;
  readonly cri: Cri;
  readonly enforcer: Enforcer;
}

async function main(): Promise<void> {
  const tell = narration((line) => process.stdout.write(`${line}\n`));
  const cri = openCri();
  try {
    const { runtimeName, runtimeVersion } = await cri.call('Version', {});
    tell.step(`The agent starts beside ${runtimeName} ${runtimeVersion}`);
    const enforcer = await startEnforcer('demo');
    tell.say('it attached to the kernel, and the runtime asks it before each entrypoint');
    await play({ tell, cri, enforcer });
  } finally {
    cri.close();
  }
}

async function play(scene: Scene): Promise<void> {
  const { tell, cri, enforcer } = scene;
  tell.step('A pod runs without a policy, and what it starts is learned');
  const first = await runPod(cri, POD);
  const proposal = await learnedProposal(enforcer);
  tell.show(`sed '/^status:/,$d' ${proposal.file}`, proposal.text.replace(/^status:[^]*/m, ''));
  tell.expect(true, `the proposal lists ${LEARNED.join(', ')}`);

  tell.step('The proposal is promoted to a policy in mode monitor');
  const policy = await promote(scene, proposal.file);

  tell.step('The pod is created again, now naming the policy in a label');
  await removePod(cri, first);
  const pod = await runPod(cri, { ...POD, labels: { ...POD.labels, [POLICY_LABEL]: policy.name } });
  tell.say(`${POLICY_LABEL}=${policy.name}`);

  tell.step('A program that is not on the list runs, and is reported');
  await expectRuns(scene, pod, UNLISTED);
  const seen = await enforcer.violation({ executablePath: UNLISTED, action: 'monitor' });
  tell.show('tail -n 1 violations.jsonl', JSON.stringify(seen, undefined, 2));
  tell.expect(true, 'the violation was reported');

  tell.step('The policy is switched to protect; the pod is not restarted');
  await enforcer.apply({ ...policy, mode: 'protect' });
  await expectDenied(scene, pod, UNLISTED);
  await expectRuns(scene, pod, LISTED);
  await enforcer.violation({ executablePath: UNLISTED, action: 'protect' });
  tell.expect(true, 'the denial was reported');

  tell.step('The agent is killed (SIGKILL); the kernel goes on');
  await enforcer.agent.signal('SIGKILL');
  await expectDenied(scene, pod, UNLISTED);
  await expectRuns(scene, pod, LISTED);

  tell.step('The next agent takes over what its predecessor left in the kernel');
  await enforcer.restart();
  await expectDenied(scene, pod, UNLISTED);
  const { exitCode, stdout, stderr } = await runAgentCommand(['status']);
  tell.show('agent status', stdout + stderr);
  tell.expect(exitCode === 0, 'the counters of all outcomes are there');
  await removePod(cri, pod);
  await enforcer.agent.signal('SIGTERM');
}

async function learnedProposal(enforcer: Enforcer): Promise<{ file: string; text: string }> {
  return await eventually(
    `a proposal lists ${LEARNED.join(', ')}`,
    async () => {
      for (const name of await readdir(enforcer.learnDirectory, { recursive: true })) {
        const file = join(enforcer.learnDirectory, name);
        if (!name.endsWith('.yaml')) continue;
        const text = await readFile(file, 'utf8');
        if (LEARNED.every((path) => text.includes(`- ${path}\n`))) return { file, text };
      }
      return undefined;
    },
    20_000,
  );
}

async function promote(
  { tell, enforcer }: Scene,
  file: string,
): Promise<{ name: string; namespace: string; allowed: Record<string, string[]> }> {
  const { exitCode, stdout, stderr } = await runAgentCommand(['promote', file, '--mode', 'monitor']);
  tell.show(`agent promote ${file} --mode monitor > policies/shop.yaml`, stdout + stderr);
  tell.expect(exitCode === 0, 'the policy is written');
  const { metadata, spec } = parse(stdout) as {
    metadata: { name: string; namespace: string };
    spec: { rulesByContainer: Record<string, { executables: { allowed: string[] } }> };
  };
  const allowed = Object.fromEntries(
    Object.entries(spec.rulesByContainer).map(([container, rules]) => [container, rules.executables.allowed]),
  );
  const policy = { name: metadata.name, namespace: metadata.namespace, allowed };
  await enforcer.apply({ ...policy, mode: 'monitor' });
  tell.expect(true, 'the agent has put it into the kernel');
  return policy;
}

async function runInPod({ tell, cri }: Scene, pod: Pod, program: string): Promise<Execution> {
  const execution = await execIn(cri, pod, CONTAINER, [program]);
  const output = execution.started ? execution.stdout + execution.stderr : execution.reason;
  tell.show(`kubectl exec ${pod.spec.name} -- ${program}`, output);
  return execution;
}

async function expectRuns(scene: Scene, pod: Pod, program: string): Promise<void> {
  const execution = await runInPod(scene, pod, program);
  scene.tell.expect(execution.started && execution.exitCode === 0, `${program} ran`);
}

async function expectDenied(scene: Scene, pod: Pod, program: string): Promise<void> {
  const execution = await runInPod(scene, pod, program);
  const denied = !execution.started && /operation not permitted/i.test(execution.reason);
  scene.tell.expect(denied, `${program} failed: Operation not permitted`);
}

await playToTheEnd(main);
