import { isAtLeast, parseKernelVersion } from './kernel-version.ts';
import type { Attempt, NodeFacts } from './node-facts.ts';
import { mayPreempt, preemptionOf } from './preemption.ts';

export type AttachmentKind = 'lsm' | 'fmod_ret';

/** Which programs of the kernel object to load and attach, in this order. */
export interface Attachment {
  readonly kind: AttachmentKind;
  readonly programs: readonly string[];
  /** Why this one: a sentence for the log. */
  readonly reason: string;
  /** What does not hold on this node, and the remedy; undefined where everything does. */
  readonly degraded?: string;
}

/** No program can be attached on this node; the sentence says why and what to do. */
export interface NoAttachment {
  readonly problem: string;
}

const REMEDIES: Readonly<Record<string, string>> = {
  E2BIG:
    'other tools have taken all places for programs at this hook, of which the kernel has 38 or fewer; stop one of them ' +
    '(bpftool link shows whose they are)',
  EPERM:
    'give this process CAP_SYS_ADMIN, or CAP_BPF and CAP_PERFMON, or use a kernel whose policy permits such programs',
  ENOENT: 'install the product again, a file of it is missing',
  ESRCH: 'update to Linux 5.10 or later, whose BTF describes the hook',
  ENOTSUPP: 'use a kernel with BPF trampolines (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y)',
};
const OTHER_REMEDY = "use a distribution's stock kernel of 5.10 or later";

type AttachmentFacts = Pick<
  NodeFacts,
  | 'architecture'
  | 'release'
  | 'version'
  | 'schedPreempt'
  | 'commandLine'
  | 'kernelConfig'
  | 'lsmList'
  | 'lsmProgram'
  | 'fmodRetProgram'
>;

/** Whether the BPF LSM is in the kernel's list; programs load without it too, but are never called. */
export function isBpfLsmActive(facts: Pick<NodeFacts, 'lsmList'>): boolean {
  return facts.lsmList?.split(',').includes('bpf') ?? false;
}

/**
 * Chooses where the check is attached. The LSM hook wherever the BPF LSM is active: it is never skipped. Else
 * fmod_ret: the kernel skips it while another task is preempted inside it on the same CPU, so on a kernel that
 * preempts two further programs narrow the gap, and the node is degraded. `forced` takes one of the two whatever
 * would be chosen, and still refuses what cannot work.
 */
export function chooseAttachment(facts: AttachmentFacts, forced?: AttachmentKind): Attachment | NoAttachment {
  const noLsm = whyNotLsm(facts);
  if (forced !== 'fmod_ret' && noLsm === undefined)
    return {
      kind: 'lsm',
      programs: ['check_lsm'],
      reason: forced === 'lsm' ? 'the LSM hook was asked for.' : 'the BPF LSM is active.',
    };
  if (forced === 'lsm') return { problem: `The LSM hook was asked for, but ${noLsm ?? ''}` };

  const version = parseKernelVersion(facts.release);
  const preemption = preemptionOf(facts);
  const noFmodRet = whyNotLoaded(facts, facts.fmodRetProgram);
  if (noFmodRet !== undefined)
    return {
      problem: `No hook can deny an exec here. With lsm: ${noLsm ?? 'not tried.'} With fmod_ret: ${noFmodRet}`,
    };
  const instead = forced === 'fmod_ret' ? 'fmod_ret was asked for' : `fmod_ret, because ${noLsm ?? ''}`;
  if (!mayPreempt(preemption))
    return {
      kind: 'fmod_ret',
      programs: ['check_fmod_ret'],
      reason: `${withoutStop(instead)}; this kernel does not preempt (${preemption}), so the program is never skipped.`,
    };
  if (version === undefined || !isAtLeast(version, 5, 12))
    return {
      problem:
        `Kernel ${facts.release} preempts tasks inside the kernel and is older than 5.12, so a program there ` +
        'could be skipped or disturbed. Boot a kernel without preemption, or 5.12 or later.',
    };
  return {
    kind: 'fmod_ret',
    programs: ['check_fmod_ret', 'check_copy', 'check_late_copy'],
    reason: `${withoutStop(instead)}; this kernel preempts (${preemption}), so two further programs are attached.`,
    degraded: degradedSentence(facts, isAtLeast(version, 7, 0)),
  };
}

/** Undefined where the LSM program works; else why it does not, with the remedy. */
function whyNotLsm(facts: AttachmentFacts): string | undefined {
  const version = parseKernelVersion(facts.release);
  if (version === undefined || !isAtLeast(version, 5, 12))
    return `kernel ${facts.release} is older than 5.12, which the LSM program needs for its atomics.`;
  if (facts.lsmList === undefined)
    return (
      'whether the BPF LSM is active cannot be read from /sys/kernel/security/lsm; mount securityfs there ' +
      '(mount -t securityfs securityfs /sys/kernel/security).'
    );
  if (!isBpfLsmActive(facts))
    return `the BPF LSM is not active (lsm is '${facts.lsmList}'); boot with ${bootOption(facts.lsmList)}.`;
  return whyNotLoaded(facts, facts.lsmProgram);
}

/** Undefined where the program could be loaded and attached. */
function whyNotLoaded(facts: AttachmentFacts, attempt: Attempt): string | undefined {
  if (attempt.works) return undefined;
  const version = parseKernelVersion(facts.release);
  if (facts.architecture === 'arm64' && version !== undefined && !isAtLeast(version, 6, 0))
    return `arm64 kernels can attach programs to functions from 6.0 on, and this is ${facts.release}; update the kernel.`;
  return `the smallest program cannot be attached (${attempt.message}); ${REMEDIES[attempt.code] ?? OTHER_REMEDY}.`;
}

function degradedSentence(facts: AttachmentFacts, isAtLeast7: boolean): string {
  const known =
    preemptionOf(facts) === 'unknown'
      ? 'may preempt (its model could not be read; mount debugfs)'
      : 'preempts';
  const voluntary = isAtLeast7 ? '' : ', or with preempt=voluntary';
  return (
    `This kernel ${known} and the BPF LSM is not in use: the kernel can skip the check in rare races, and what it ` +
    `skips is allowed. Boot with ${bootOption(facts.lsmList)}${voluntary}.`
  );
}

function bootOption(lsmList: string | undefined): string {
  if (lsmList === undefined) return "'bpf' added to the kernel's lsm= list";
  const others = lsmList.split(',').filter((name) => name !== '' && name !== 'bpf');
  return `lsm=${[...others, 'bpf'].join(',')}`;
}

function withoutStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
