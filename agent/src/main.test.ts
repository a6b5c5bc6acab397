import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const MAIN = join(import.meta.dirname, 'main.ts');

const PROPOSAL = `apiVersion: runtimeenforcer.kubewarden.io/v1alpha1
kind: WorkloadPolicyProposal
metadata: { name: deploy-web, namespace: shop }
spec:
  rulesByContainer: { main: { executables: { allowed: [/usr/bin/ls, /bin/sh] } } }
`;

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-cli-'));
});
afterAll(async () => rm(directory, { recursive: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function agent(args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const code = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([child.stdout.toArray(), child.stderr.toArray()]);
  return {
    code: await code,
    stdout: Buffer.concat(stdout as Buffer[]).toString(),
    stderr: Buffer.concat(stderr as Buffer[]).toString(),
  };
}

describe('agent', () => {
  it('tells its options and its commands', async () => {
    const { code, stdout, stderr } = await agent(['--help']);
    expect([code, stderr]).toEqual([0, '']);
    for (const word of ['--policy-dir DIR', '--on-exit', 'NRI_FAILOPEN=true', 'check', 'promote FILE']) {
      expect(stdout).toContain(word);
    }
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(125);
  });

  it('tells the options of a command, and its version', async () => {
    const [help, version] = await Promise.all([agent(['promote', '--help']), agent(['--version'])]);
    expect(help.stdout).toMatch(/^Usage: agent promote FILE \[options\]/);
    expect(help.stdout).toContain('--mode monitor|protect');
    expect(version).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string,
      stderr: '',
    });
  });
});

describe('agent refuses with exit code 2 and one sentence', () => {
  it.each<[string[], string]>([
    [
      [],
      'nothing to do: this is no pod of a cluster; give --policy-dir DIR to enforce, --learn-dir DIR to learn, ',
    ],
    [['--polcy-dir', 'x'], '"--polcy-dir" is not an option; did you mean --policy-dir?'],
    [['--zzzzzzzzzz'], '"--zzzzzzzzzz" is not an option; agent --help lists the options'],
    [['-p', 'x'], '"-p" is not an option; did you mean --policy-dir?'],
    [['--policy-dir'], '--policy-dir needs a value: --policy-dir DIR'],
    [['--policy-dir', '--learn-dir', 'x'], '--policy-dir needs a value: --policy-dir DIR'],
    [['--policy-dir='], '--policy-dir needs a value: --policy-dir DIR'],
    [['--policy-dir', 'a', '--policy-dir', 'b'], '--policy-dir is given twice; give it once'],
    [['--policy-dir', 'a', 'b'], '"b" is not expected here'],
    [['--policy-dir', 'a', '--on-exit', 'stop'], '--on-exit "stop" is not known; expected keep or release'],
    [
      ['--policy-dir', 'a', '--log-level', 'loud'],
      '--log-level "loud" is not known; expected debug, info, warn or error',
    ],
    [
      ['--policy-dir', 'a', '--attachment', 'kprobe'],
      '--attachment "kprobe" is not known; expected auto, lsm or fmod_ret',
    ],
    [
      ['--policy-dir', 'a', '--capacity', '12.5'],
      '--capacity "12.5": expected a whole number from 1024 to 16777216',
    ],
    [
      ['--policy-dir', 'a', '--nri-plugin-index', '7'],
      '--nri-plugin-index "7": expected two digits, such as 00',
    ],
    [
      ['--policy-dir', 'a', '--metrics-bind-address', '9090'],
      '--metrics-bind-address "9090": expected HOST:PORT, such as 127.0.0.1:9090 or [::1]:9090',
    ],
    [
      ['--violations-file', 'a'],
      '--violations-file is for an agent without Kubernetes; give --policy-dir DIR',
    ],
    [
      ['--policy-dir', 'a', '--grpc-port', '1'],
      '--grpc-port is for Kubernetes, and --policy-dir or --learn-dir',
    ],
    [
      ['--kubeconfig', 'a'],
      '--grpc-mtls-cert-dir is missing: give the directory with tls.crt, tls.key and ca.crt',
    ],
    [
      ['--kubeconfig', 'a', '--learning-namespace-selector', '{}'],
      '--learning-namespace-selector: it selects everything because it is empty',
    ],
    [
      ['--kubeconfig', 'a', '--health-probe-bind-address', '8081'],
      '--health-probe-bind-address "8081": expected HOST:PORT',
    ],
    [
      ['--kubeconfig', 'a', '--otlp-protocol', 'http'],
      '--otlp-protocol "http" is not known; expected grpc or',
    ],
    [['chek'], '"chek" is not a command; did you mean check?'],
    [
      ['frobnicate'],
      '"frobnicate" is not a command; expected one of check, status, promote, override, release',
    ],
    [['status', '--json=yes'], '--json takes no value; write --json alone'],
    [['check', 'now'], '"now" is not expected here'],
    [['override'], '--mode is missing; expected --mode monitor|off|clear'],
    [['override', '--mode', 'on'], '--mode "on" is not known; expected monitor, off or clear'],
    [['promote'], 'promote needs the file of a proposal: agent promote FILE'],
    [['promote', 'a', 'b', '--mode', 'monitor'], '"b" is one file too many; give one'],
    [['promote', 'a'], '--mode is missing; expected --mode monitor|protect'],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await agent(args);
    expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({ code: 2, stdout: '', lines: 2 });
    expect(stderr.startsWith(`agent: ${message}`) || `expected ${message} in ${stderr}`).toBe(true);
  });
});

describe('agent promote', () => {
  it('prints the policy of a proposal, or writes it', async () => {
    const file = join(directory, 'deploy-web.yaml');
    const output = join(directory, 'policy.yaml');
    await writeFile(file, PROPOSAL);
    const [printed, written] = await Promise.all([
      agent(['promote', file, '--mode', 'monitor']),
      agent(['promote', file, '--mode', 'protect', '--output', output]),
    ]);
    expect(printed).toMatchObject({ code: 0, stderr: '' });
    expect(printed.stdout).toMatch(
      /kind: WorkloadPolicy\n[^]*promoted-from: deploy-web\n[^]*mode: monitor\n/,
    );
    expect(written.stdout).toBe(`shop/deploy-web written to ${output} in mode protect\n`);
    expect(await readFile(output, 'utf8')).toContain('mode: protect');
  });

  it.each<[string, string, RegExp]>([
    [
      'a broken proposal',
      PROPOSAL.replace('[/usr', '[usr'),
      /^agent: .*broken\.yaml:5:\d+: spec\..*does not start with "\/"/,
    ],
    ['a policy', PROPOSAL.replace('Proposal', ''), /kind: .*expected/],
    [
      'a name that no label holds',
      PROPOSAL.replace('deploy-web', 'd'.repeat(64)),
      /pods name their policy in a label/,
    ],
    ['an empty file', '', /holds no document/],
  ])('refuses %s with exit code 1', async (_what, text, message) => {
    const broken = join(await mkdtemp(join(directory, 'broken-')), 'broken.yaml');
    await writeFile(broken, text);
    const { code, stdout, stderr } = await agent(['promote', broken, '--mode', 'monitor']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('says what is wrong with its files', async () => {
    const file = join(directory, 'for-output.yaml');
    await writeFile(file, PROPOSAL);
    const [missing, folder, output] = await Promise.all([
      agent(['promote', join(directory, 'no.yaml'), '--mode', 'monitor']),
      agent(['promote', directory, '--mode', 'monitor']),
      agent(['promote', file, '--mode', 'monitor', '--output', join(directory, 'no', 'out.yaml')]),
    ]);
    expect(missing.stderr).toMatch(/^agent: cannot read the proposal .*no\.yaml: it does not exist\n$/);
    expect(folder.stderr).toMatch(/it is not a regular file\n$/);
    expect(output.stderr).toMatch(/^agent: cannot write the policy to .*out\.yaml: ENOENT/);
    expect([missing.code, folder.code, output.code]).toEqual([1, 1, 1]);
  });
});

describe('agent that cannot start', () => {
  it.each<[string, string[], RegExp]>([
    [
      'its state directory',
      ['--state-dir', '/proc/nothing/here'],
      /cannot use the directory \/proc\/nothing\/here of --state-dir: it does not exist/,
    ],
    [
      'its learning directory',
      ['--learn-dir', '/dev/null'],
      /cannot use the directory \/dev\/null of --learn-dir: it is not a directory/,
    ],
    [
      'its violations file',
      ['--violations-file', '/proc/nothing'],
      /cannot write the violations file \/proc\/nothing: it does not exist/,
    ],
  ])('says what is wrong with %s, and exits with code 1', async (_what, args, message) => {
    const state = args.includes('--state-dir') ? [] : ['--state-dir', directory];
    const { code, stdout, stderr } = await agent(['--policy-dir', directory, ...state, ...args]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.split('\n').at(-2)).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});

describe('agent status', () => {
  it('fails where no agent runs, and says what is enforced nevertheless', async () => {
    const { code, stderr } = await agent(['status', '--state-dir', directory]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^agent: no agent enforces with --state-dir .*; [^\n]+\n$/);
  });
});

describe('agent check', () => {
  it('tells one line for each thing, with a remedy, and whether the node will do', async () => {
    const { code, stdout, stderr } = await agent(['check', '--nri-socket-path', join(directory, 'nri.sock')]);
    expect([code, stderr]).toEqual([1, '']);
    expect(stdout).toMatch(
      /^MISSING {2}nri +Cannot reach the container runtime at NRI socket .*NRI enabled/m,
    );
    expect(stdout).toMatch(/^(ok|limited|MISSING) +kernel /m);
    expect(stdout).toMatch(/This node cannot run the agent as it is\.\n$/);
  });
});
