import { chooseAttachment, type Attachment, type AttachmentKind, type NoAttachment } from './attachment.ts';
import { isAtLeast, parseKernelVersion, type KernelVersion } from './kernel-version.ts';
import type { Native } from './native.ts';
import { gatherNodeFacts, isBpfFs, isCgroup2, type FactSources, type NodeFacts } from './node-facts.ts';
import { preemptionOf, type Preemption } from './preemption.ts';

const OLDEST_KERNEL = { major: 5, minor: 10 } as const;
const CAP_SYS_ADMIN = 21n;
const CAP_PERFMON = 38n;
const CAP_BPF = 39n;

export type CgroupLayout = 'v2' | 'hybrid' | 'v1';

/** One thing that was looked at, and what came of it. */
export interface Finding {
  readonly name: 'kernel' | 'btf' | 'permission' | 'lockdown' | 'ring-buffer' | 'hook' | 'bpffs' | 'key-size';
  /** 'missing': the product cannot run here. 'limited': it runs, with what the sentence says. */
  readonly state: 'ok' | 'limited' | 'missing';
  /** What is so; where not 'ok', with the remedy. */
  readonly sentence: string;
}

/** Whether and how the product can run on this node. */
export interface NodeReport {
  readonly facts: NodeFacts;
  readonly findings: readonly Finding[];
  /** Whether nothing is missing. */
  readonly usable: boolean;
  readonly kernel: KernelVersion | undefined;
  readonly preemption: Preemption;
  readonly cgroups: CgroupLayout;
  /** Whether allow-list keys may have more than 512 bytes, so that paths of up to 4,095 bytes fit. */
  readonly largeKeys: boolean;
  readonly attachment: Attachment | NoAttachment;
}

/** Looks at this node and judges it. Loads and removes the smallest programs; changes nothing. */
export function probeNode(native: Native, sources: FactSources, forced?: AttachmentKind): NodeReport {
  return judgeNode(gatherNodeFacts(native, sources), forced);
}

/** Judges what was read of a node. */
export function judgeNode(facts: NodeFacts, forced?: AttachmentKind): NodeReport {
  const attachment = chooseAttachment(facts, forced);
  const findings = [
    judgeKernel(facts),
    judgeBtf(facts),
    judgePermission(facts),
    judgeLockdown(facts),
    judgeRingBuffer(facts),
    judgeHook(attachment),
    judgeBpfFs(facts),
    judgeKeySize(facts),
  ];
  return {
    facts,
    findings,
    usable: findings.every(({ state }) => state !== 'missing'),
    kernel: parseKernelVersion(facts.release),
    preemption: preemptionOf(facts),
    cgroups: cgroupLayoutOf(facts),
    largeKeys: facts.largeKeys.works,
    attachment,
  };
}

/** v2: one tree. hybrid: v1 controllers, with the v2 tree in `unified`. v1: no v2 tree. */
export function cgroupLayoutOf(facts: Pick<NodeFacts, 'cgroupMagic' | 'unifiedCgroupMagic'>): CgroupLayout {
  if (isCgroup2(facts.cgroupMagic)) return 'v2';
  return isCgroup2(facts.unifiedCgroupMagic) ? 'hybrid' : 'v1';
}

function judgeKernel({ release }: NodeFacts): Finding {
  const version = parseKernelVersion(release);
  const { major, minor } = OLDEST_KERNEL;
  if (version === undefined)
    return missing(
      'kernel',
      `The kernel's release '${release}' is not a version; Linux ${major}.${minor} or later is needed.`,
    );
  if (!isAtLeast(version, major, minor))
    return missing('kernel', `Kernel ${release} is too old; update to Linux ${major}.${minor} or later.`);
  return ok('kernel', `Kernel ${release}.`);
}

function judgeBtf({ kernelBtf }: NodeFacts): Finding {
  return kernelBtf
    ? ok('btf', 'The kernel describes its types (BTF).')
    : missing(
        'btf',
        'The kernel has no BTF: /sys/kernel/btf/vmlinux is missing or not readable. Use a kernel built with ' +
          'CONFIG_DEBUG_INFO_BTF=y (every current distribution has one), and mount /sys into the container.',
      );
}

function judgePermission({ effectiveCapabilities }: NodeFacts): Finding {
  const held = BigInt(`0x${effectiveCapabilities ?? '0'}`);
  const holds = (capability: bigint): boolean => ((held >> capability) & 1n) === 1n;
  if (holds(CAP_SYS_ADMIN) || (holds(CAP_BPF) && holds(CAP_PERFMON)))
    return ok('permission', 'This process may use BPF.');
  return missing(
    'permission',
    'This process may not use BPF. Run it as root with CAP_SYS_ADMIN, or with CAP_BPF and CAP_PERFMON ' +
      '(securityContext.capabilities.add; kernels before 5.8 know CAP_SYS_ADMIN only).',
  );
}

function judgeLockdown({ lockdown }: NodeFacts): Finding {
  const level = /\[(\w+)\]/.exec(lockdown ?? '')?.[1];
  return level === 'confidentiality'
    ? missing(
        'lockdown',
        "Kernel lockdown is at 'confidentiality', which forbids BPF programs to read kernel memory. Boot with " +
          'lockdown=integrity or without lockdown.',
      )
    : ok('lockdown', `Kernel lockdown: ${level ?? 'not in this kernel'}.`);
}

function judgeRingBuffer({ ringBuffer }: NodeFacts): Finding {
  if (ringBuffer.works) return ok('ring-buffer', 'Ring buffers can be made.');
  const remedy =
    ringBuffer.code === 'EPERM'
      ? 'BPF is not permitted, or the limit on locked memory (RLIMIT_MEMLOCK) is too low: raise it, or run as root with CAP_SYS_RESOURCE.'
      : `Update to Linux ${OLDEST_KERNEL.major}.${OLDEST_KERNEL.minor} or later.`;
  return missing('ring-buffer', `A BPF ring buffer cannot be made: ${ringBuffer.message}. ${remedy}`);
}

function judgeHook(attachment: Attachment | NoAttachment): Finding {
  if ('problem' in attachment) return missing('hook', attachment.problem);
  return attachment.degraded === undefined
    ? ok('hook', `Execs are checked by ${attachment.programs.join(', ')}: ${attachment.reason}`)
    : { name: 'hook', state: 'limited', sentence: attachment.degraded };
}

function judgeBpfFs({ bpfFsMagic }: NodeFacts): Finding {
  return isBpfFs(bpfFsMagic)
    ? ok('bpffs', 'The BPF file system is mounted.')
    : missing(
        'bpffs',
        'No BPF file system is mounted at /sys/fs/bpf, so enforcement would end with the agent. Run ' +
          '`mount -t bpf bpf /sys/fs/bpf` on the node, and mount it into the container.',
      );
}

function judgeKeySize({ largeKeys }: NodeFacts): Finding {
  if (largeKeys.works) return ok('key-size', 'Paths of up to 4,095 bytes can be listed.');
  return {
    name: 'key-size',
    state: 'limited',
    sentence:
      `This kernel takes map keys of at most 512 bytes (${largeKeys.code}), so paths of more than 508 bytes are never ` +
      'found in a list. Update to Linux 5.11 or later if you have longer ones.',
  };
}

function ok(name: Finding['name'], sentence: string): Finding {
  return { name, state: 'ok', sentence };
}

function missing(name: Finding['name'], sentence: string): Finding {
  return { name, state: 'missing', sentence };
}
