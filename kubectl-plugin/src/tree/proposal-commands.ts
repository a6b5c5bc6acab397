import {
  ALL_FORMATS,
  ALL_NAMESPACES,
  type CommandSpec,
  DATA_FORMATS,
  DRY_RUN,
  NO_HEADERS,
  type OptionSpec,
  outputOption,
  SELECTOR,
} from './command-spec.ts';

const MODE: OptionSpec = {
  flags: '--mode <mode>',
  help: 'mode of the policy: "monitor" (default) or "protect"',
  completes: ['monitor', 'protect'],
};

/** The same command stands at the top level and under `proposal`. */
export function promoteCommand(prefix: '' | 'proposal '): CommandSpec {
  return {
    name: 'promote',
    summary: 'Make policies from proposals',
    details:
      'Labels each proposal and waits until the controller has made its policy. The proposal is gone afterwards.',
    operands: [{ name: 'PROPOSAL', optional: true, repeated: true, completes: 'proposals' }],
    options: [
      MODE,
      { flags: '--all', help: 'every proposal of the namespace' },
      SELECTOR,
      DRY_RUN,
      { flags: '--no-wait', help: 'do not wait for the policies' },
      { flags: '--wait', help: 'wait for the policies (default)' },
      { flags: '--timeout <time>', help: 'how long to wait for each policy (default 30s)' },
    ],
    examples: [
      [`${prefix}promote deploy-web`, 'a policy in monitor mode from what was learned of Deployment web'],
      [
        `${prefix}promote deploy-web --mode protect`,
        'the same, which denies at once what is not on its list',
      ],
      [`${prefix}promote --all -n shop`, 'policies for all that was learned in a namespace'],
    ],
    load: async () => (await import('../commands/promote.ts')).promote,
  };
}

export const PROPOSAL_COMMANDS: CommandSpec = {
  name: 'proposal',
  summary: 'Look at what was learned, and make policies from it',
  subcommands: [
    {
      name: 'list',
      summary: 'List proposals',
      operands: [{ name: 'PROPOSAL', optional: true, repeated: true, completes: 'proposals' }],
      options: [ALL_NAMESPACES, SELECTOR, outputOption(...ALL_FORMATS), NO_HEADERS],
      examples: [['proposal list -A', 'the proposals of all namespaces']],
      load: async () => (await import('../commands/listing.ts')).listProposals,
    },
    {
      name: 'show',
      summary: 'Show one proposal',
      operands: [{ name: 'PROPOSAL', completes: 'proposals' }],
      options: [outputOption('table', 'json', 'yaml', 'name', 'jsonpath=TEMPLATE')],
      examples: [['proposal show deploy-web', 'its containers and paths']],
      load: async () => (await import('../commands/show.ts')).showProposal,
    },
    {
      name: 'review',
      summary: 'Show the evidence for each path, and what to look at before it is allowed',
      details:
        'Exit code 3 where a path is dangerous to allow, was only started through kubectl exec, or lies in a directory that all may write.',
      operands: [{ name: 'PROPOSAL', completes: 'proposals' }],
      options: [outputOption('table', 'wide', 'json', 'yaml', 'jsonpath=TEMPLATE'), NO_HEADERS],
      examples: [['proposal review deploy-web', 'how often, when, where and by whom each path was started']],
      load: async () => (await import('../commands/review.ts')).review,
    },
    {
      name: 'diff',
      summary: 'Show what a proposal would change in a policy',
      details:
        'Exit code 3 where they differ. The policy is the one of the same name unless another is named.',
      operands: [
        { name: 'PROPOSAL', completes: 'proposals' },
        { name: 'POLICY', optional: true, completes: 'policies' },
      ],
      options: [outputOption(...DATA_FORMATS.slice(0, 3))],
      examples: [['proposal diff deploy-web', 'paths that only one of the two has']],
      load: async () => (await import('../commands/compare.ts')).diffProposal,
    },
    promoteCommand('proposal '),
  ],
};
