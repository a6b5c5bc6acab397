import {
  ALL_NAMESPACES,
  type CommandSpec,
  DATA_FORMATS,
  DRY_RUN,
  FILE,
  NO_HEADERS,
  type OptionSpec,
  outputOption,
} from './command-spec.ts';
import { POLICY_COMMANDS } from './policy-commands.ts';
import { PROPOSAL_COMMANDS, promoteCommand } from './proposal-commands.ts';

const YES: OptionSpec = { flags: '-y, --yes', help: 'do not ask' };
const WAIT: readonly OptionSpec[] = [
  { flags: '--wait', help: 'wait until all pods are new' },
  { flags: '--timeout <time>', help: 'how long to wait (default 5m)' },
];

/** Everything behind `kubectl runtime-enforcer`. */
export const ROOT: CommandSpec = {
  name: 'kubectl runtime-enforcer',
  summary: 'Decide which executables the containers of a cluster may start',
  subcommands: [
    promoteCommand(''),
    PROPOSAL_COMMANDS,
    POLICY_COMMANDS,
    {
      name: 'violations',
      summary: 'List what was not on the lists',
      operands: [{ name: 'POLICY', optional: true, completes: 'policies' }],
      options: [
        { flags: '-w, --watch', help: 'go on, and print what comes new' },
        { flags: '--since <time>', help: 'only what was seen since then, such as 10m or 2d' },
        { flags: '--policy <policy>', help: 'only those of one policy', completes: 'policies' },
        { flags: '--acknowledged', help: 'those that were filed away, with the reasons' },
        ALL_NAMESPACES,
        outputOption('table', 'wide', 'json', 'yaml', 'jsonpath=TEMPLATE'),
        NO_HEADERS,
      ],
      examples: [
        ['violations -w', 'live, newest last'],
        ['violations --policy deploy-web --since 1h -o wide', 'with reason, origin, parent and node'],
      ],
      load: async () => (await import('../commands/violations.ts')).listViolations,
    },
    {
      name: 'bind',
      summary: 'Put the pods of a workload under a policy',
      details: 'Labels the template of its pods, so that they are replaced: what that means is shown first.',
      operands: [
        { name: 'WORKLOAD', completes: 'workloads' },
        { name: 'POLICY', completes: 'policies' },
      ],
      options: [YES, DRY_RUN, ...WAIT],
      examples: [['bind deployment/web deploy-web', 'asks before it replaces the pods']],
      load: async () => (await import('../commands/bind.ts')).bind,
    },
    {
      name: 'unbind',
      summary: 'Take the pods of a workload from under their policy',
      operands: [{ name: 'WORKLOAD', completes: 'boundWorkloads' }],
      options: [YES, DRY_RUN, ...WAIT],
      examples: [
        ['unbind deployment/web --yes', 'new pods are not checked any more, and learned from again'],
      ],
      load: async () => (await import('../commands/bind.ts')).unbind,
    },
    {
      name: 'explain',
      summary: 'Tell what happens if a container starts an executable, and why',
      details: 'Exit code 3 where it is a violation.',
      operands: [{ name: 'POD', completes: 'pods' }, { name: 'EXECUTABLE' }],
      options: [
        { flags: '-c, --container <name>', help: 'the container', completes: 'podContainers' },
        outputOption(...DATA_FORMATS),
      ],
      examples: [['explain web-7d4b9-x2x4l /bin/sh', 'each question that decides, with its answer']],
      load: async () => (await import('../commands/explain.ts')).explain,
    },
    {
      name: 'simulate',
      summary: 'Tell what a policy would have made of what was recorded',
      details:
        'Recorded are the violations of the policy (acknowledged ones too), the proposal of its name, or a file as the agent writes its violations. Exit code 3 where something would be a violation.',
      operands: [{ name: 'POLICY', optional: true, completes: 'policies' }],
      options: [
        FILE,
        {
          flags: '--recorded <what>',
          help: '"violations" (default), "proposal", or a file of JSON lines; - for standard input',
          completes: ['violations', 'proposal'],
        },
        { flags: '--mode <mode>', help: 'as if it were in this mode', completes: ['monitor', 'protect'] },
        outputOption(...DATA_FORMATS),
        NO_HEADERS,
      ],
      examples: [
        ['simulate deploy-web --mode protect', 'what would be denied'],
        ['simulate -f web.yaml --recorded violations.jsonl', 'without a cluster'],
      ],
      load: async () => (await import('../commands/simulate.ts')).simulatePolicy,
    },
    {
      name: 'test',
      summary: 'Run policy tests, without a cluster',
      details:
        'A test is a YAML document of kind PolicyTest: a policy file, and execs that are expected to be allowed or denied. Exit code 3 where one is not.',
      operands: [{ name: 'DIRECTORY', completes: 'files' }],
      options: [
        { flags: '-o, --output <format>', help: 'one of text, junit', completes: ['text', 'junit'] },
        { flags: '--junit <file>', help: 'also write a JUnit report', completes: 'files' },
      ],
      examples: [
        ['test policies/ --junit report.xml', 'every test below a directory, for people and for CI'],
      ],
      load: async () => (await import('../commands/test-policies.ts')).testPolicies,
    },
    {
      name: 'status',
      summary: 'Show the state of the product on one screen',
      options: [
        { flags: '--pods', help: 'which pods are really enforced, by which policy, on which node' },
        ALL_NAMESPACES,
        outputOption('table', 'wide', 'json', 'yaml', 'jsonpath=TEMPLATE'),
        NO_HEADERS,
      ],
      examples: [['status --pods -n shop', 'a line for each pod that names a policy']],
      load: async () => (await import('../commands/status.ts')).status,
    },
    {
      name: 'doctor',
      summary: 'Look for what is wrong, and tell the command that repairs it',
      details: 'Exit code 3 where something is wrong.',
      options: [outputOption(...DATA_FORMATS)],
      examples: [['doctor', 'the whole installation, and all that is bound to a policy']],
      load: async () => (await import('../commands/doctor.ts')).doctor,
    },
    {
      name: 'version',
      summary: 'Print the versions of the plugin and of what runs in the cluster',
      options: [{ flags: '--client', help: 'only that of the plugin' }, outputOption(...DATA_FORMATS)],
      examples: [['version --client', 'without a cluster']],
      load: async () => (await import('../commands/version.ts')).version,
    },
    {
      name: 'completion',
      summary: 'Print the program by which kubectl completes these commands',
      details: 'kubectl looks for it on PATH under the name kubectl_complete-runtime_enforcer.',
      examples: [
        [
          'completion > ~/bin/kubectl_complete-runtime_enforcer && chmod +x ~/bin/kubectl_complete-runtime_enforcer',
          'makes it known',
        ],
      ],
      load: async () => (await import('../commands/completion.ts')).printCompletion,
    },
    {
      name: 'options',
      summary: "List kubectl's configuration flags, which every command takes",
      load: async () => (await import('../commands/kube-options.ts')).printKubeOptions,
    },
  ],
};
