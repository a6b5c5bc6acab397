import {
  ALL_FORMATS,
  ALL_NAMESPACES,
  type CommandSpec,
  DATA_FORMATS,
  DRY_RUN,
  FILE,
  NO_HEADERS,
  type OperandSpec,
  type OptionSpec,
  outputOption,
  SELECTOR,
} from './command-spec.ts';

const POLICY: OperandSpec = { name: 'POLICY', completes: 'policies' };
const EXECUTABLE = { name: 'EXECUTABLE', optional: true, repeated: true } as const;
const CONTAINER: OperandSpec = { name: 'CONTAINER', optional: true, completes: 'policyContainers' };
const ADD_CONTAINER: OptionSpec = {
  flags: '--add-container',
  help: 'the container may be one that the policy does not name yet',
};

const WAIT: readonly OptionSpec[] = [
  { flags: '--wait', help: 'wait until the change is in force on all nodes' },
  { flags: '--timeout <time>', help: 'how long to wait (default 1m)' },
];

export const POLICY_COMMANDS: CommandSpec = {
  name: 'policy',
  summary: 'Look at policies and change them',
  subcommands: [
    {
      name: 'list',
      summary: 'List policies',
      operands: [{ name: 'POLICY', optional: true, repeated: true, completes: 'policies' }],
      options: [ALL_NAMESPACES, SELECTOR, outputOption(...ALL_FORMATS), NO_HEADERS],
      examples: [['policy list -A', 'the policies of all namespaces']],
      load: async () => (await import('../commands/listing.ts')).listPolicies,
    },
    {
      name: 'show',
      summary: 'Show one policy, or what is protected',
      details: 'A policy that is named "protection" is shown by: policy show wp/protection',
      operands: [{ ...POLICY, optional: true }],
      options: [outputOption('table', 'json', 'yaml', 'name', 'jsonpath=TEMPLATE')],
      examples: [
        ['policy show deploy-web', 'its lists, its state on the nodes, and its violations'],
        ['policy show protection -A', 'which workloads are under which policy'],
      ],
      load: async () => (await import('../commands/show.ts')).showPolicy,
      subcommands: [
        {
          name: 'protection',
          summary: 'Show which workloads are under which policy',
          options: [ALL_NAMESPACES, outputOption(...DATA_FORMATS), NO_HEADERS],
          examples: [['policy show protection -o json', 'the same as data']],
          load: async () => (await import('../commands/protection.ts')).showProtection,
        },
      ],
    },
    {
      name: 'protect',
      summary: 'Deny what is not on the list, from now on',
      operands: [POLICY],
      options: [DRY_RUN, ...WAIT],
      examples: [
        ['policy protect deploy-web', 'no pod has to restart for it'],
        ['policy protect deploy-web --wait', 'only go on when every node denies'],
      ],
      load: async () => (await import('../commands/policy-mode.ts')).protectPolicy,
    },
    {
      name: 'monitor',
      summary: 'Only report what is not on the list, from now on',
      operands: [POLICY],
      options: [DRY_RUN, ...WAIT],
      examples: [['policy monitor deploy-web', 'nothing is denied any more']],
      load: async () => (await import('../commands/policy-mode.ts')).monitorPolicy,
    },
    {
      name: 'allow',
      summary: 'Add executables to the list of a container',
      details:
        'Paths are those that the kernel resolves: absolute, behind all symbolic links. Those on the list already stay.',
      operands: [POLICY, CONTAINER, { ...EXECUTABLE, completes: 'allowablePaths' }],
      options: [
        { flags: '--from-violations', help: 'allow all that now stands in the violations of the policy' },
        ADD_CONTAINER,
        DRY_RUN,
        ...WAIT,
      ],
      examples: [
        ['policy allow deploy-web nginx /usr/bin/ps', 'one more path'],
        ['policy allow deploy-web --from-violations', 'what was reported is right, all of it'],
        ['policy allow deploy-web sidecar /app/sidecar --add-container', 'a container that was not there'],
      ],
      load: async () => (await import('../commands/policy-executables.ts')).allowExecutables,
    },
    {
      name: 'deny',
      summary: 'Take executables from the list of a container',
      operands: [POLICY, CONTAINER, { ...EXECUTABLE, completes: 'allowedPaths' }],
      options: [DRY_RUN, ...WAIT],
      examples: [['policy deny deploy-web nginx /bin/sh', 'no shell any more']],
      load: async () => (await import('../commands/policy-executables.ts')).denyExecutables,
    },
    {
      name: 'ack',
      summary: 'File a violation away, with a reason',
      operands: [POLICY, { name: 'VIOLATION-ID', completes: 'violationIds' }],
      options: [
        { flags: '--reason <text>', help: 'why; asked for, or read from standard input, when left out' },
        DRY_RUN,
      ],
      examples: [['policy ack deploy-web 3 --reason "debug session of 12 May"', 'violation 3 is dealt with']],
      load: async () => (await import('../commands/acknowledge.ts')).acknowledge,
    },
    {
      name: 'diff',
      summary: 'Show what a proposal, or a file, would change in a policy',
      details:
        'Exit code 3 where they differ. The proposal is the one of the same name unless another is named.',
      operands: [POLICY, { name: 'PROPOSAL', optional: true, completes: 'proposals' }],
      options: [FILE, outputOption(...DATA_FORMATS.slice(0, 3))],
      examples: [['policy diff deploy-web -f web.yaml', 'before it is applied']],
      load: async () => (await import('../commands/compare.ts')).diffPolicy,
    },
    {
      name: 'create',
      summary: 'Create the policies of a file',
      details: 'Every policy of the file is checked before the first is created.',
      options: [FILE, DRY_RUN, outputOption('name', 'json', 'yaml')],
      examples: [
        ['policy create -f web.yaml --dry-run=server', 'only ask the server what it thinks of them'],
      ],
      load: async () => (await import('../commands/create.ts')).createPolicies,
    },
  ],
};
