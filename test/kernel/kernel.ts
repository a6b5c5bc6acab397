import { mkdir } from 'node:fs/promises';
import { release } from 'node:os';
import {
  createContainerSlots,
  type ContainerSlots,
  type Slot,
} from '@runtime-enforcer/agent/containers/container-slots';
import type { AttachmentKind } from '@runtime-enforcer/agent/kernel/attachment';
import type { ExecEvent, KernelEnforcer } from '@runtime-enforcer/agent/kernel/enforcer';
import { createGracePeriod } from '@runtime-enforcer/agent/kernel/grace-period';
import { loadNative, type Native, type NativeProgram } from '@runtime-enforcer/agent/kernel/native';
import { openEnforcer } from '@runtime-enforcer/agent/kernel/open-enforcer';
import { probeNode, type NodeReport } from '@runtime-enforcer/agent/kernel/probe';
import { createPolicyTable, type PolicyTable } from '@runtime-enforcer/agent/policies/policy-table';
import { readMountNamespace } from '@runtime-enforcer/agent/containers/running-programs';
import { openCgroupTree, type CgroupTree } from '@runtime-enforcer/agent/containers/cgroup-tree';
import { eventually } from '../runtime/eventually.ts';
import { OBJECTS } from './guest-files.ts';

/** So that every length of path has room: the table of the longest holds a 64th of it. */
const CAPACITY = 262_144;
export const PIN_ROOT = '/sys/fs/bpf/kernel-ring';

/** Lines of the agent's log, in the order in which they came. */
export const logLines: string[] = [];
const at = (level: string) => (fields: object, message: string) =>
  void logLines.push(`${level}: ${message} ${JSON.stringify(fields)}`);
const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };

/** The kernel side of the agent on the guest's kernel, without a container runtime. */
export interface Kernel {
  readonly native: Native;
  readonly report: NodeReport;
  readonly enforcer: KernelEnforcer;
  readonly table: PolicyTable;
  readonly slots: ContainerSlots;
  readonly tree: CgroupTree;
  /** Every record so far. */
  readonly events: readonly ExecEvent[];
  /** What the outcomes grew by while `action` ran; only those that did. */
  counted(action: () => Promise<unknown>): Promise<Readonly<Record<string, number>>>;
  /** Waits for a record that holds all the given fields. */
  event(fields: Partial<ExecEvent> & { text?: string }): Promise<ExecEvent>;
  /** Makes the program look at the levels of the slot's cgroup, and binds it. */
  bind(content: Parameters<ContainerSlots['bind']>[0], level: number): Slot;
  stop(options?: { release: boolean }): Promise<void>;
}

export const native = loadNative(OBJECTS.addon);

/** What the guest's kernel can do. */
export function probe(forced?: AttachmentKind): NodeReport {
  return probeNode(native, { objectPath: OBJECTS.probe }, forced);
}

/** The attachments that work on the guest's kernel, the one first that the agent would choose. */
export function attachments(): AttachmentKind[] {
  return (['lsm', 'fmod_ret'] as const).filter((kind) => !('problem' in probe(kind).attachment));
}

/** Those that the kernel never skips, so that every exec has exactly one outcome. */
export function exactAttachments(): AttachmentKind[] {
  return attachments().filter((kind) => {
    const { attachment } = probe(kind);
    return !('problem' in attachment) && attachment.degraded === undefined;
  });
}

/** The addon, which calls before and after it attaches a program. */
function watched(onAttach: () => void): Native {
  return {
    ...native,
    load(path, options) {
      const object = native.load(path, options);
      const programs = Array.from(object.programs, ([name, program]): [string, NativeProgram] => [
        name,
        {
          ...program,
          attach() {
            onAttach();
            const link = program.attach();
            onAttach();
            return link;
          },
        },
      ]);
      return { maps: object.maps, programs: new Map(programs), close: () => object.close() };
    },
  };
}

/** `onAttach` is called before and after each program is attached, now and at the commit. */
export async function openKernel(
  forced?: AttachmentKind,
  options: { pinRoot?: string; objectPath?: string; capacity?: number; onAttach?: () => void } = {},
): Promise<Kernel> {
  const { pinRoot = PIN_ROOT, objectPath = OBJECTS.enforcer, capacity = CAPACITY, onAttach } = options;
  native.raiseMemlockLimit();
  const report = probe(forced);
  const { attachment } = report;
  if ('problem' in attachment) throw new Error(attachment.problem);
  const tree = await openCgroupTree(native);
  const hostMountNamespace = await readMountNamespace(1);
  const countFailure = (place: string): void => void logLines.push(`failure: ${place}`);
  await mkdir(pinRoot, { recursive: true });
  const enforcer = await openEnforcer({
    native: onAttach === undefined ? native : watched(onAttach),
    log,
    countFailure,
    objectPath,
    facts: {
      hostMountNamespace,
      cgroupSubsystem: tree.subsystem,
      largeKeys: report.largeKeys,
      typedCast: native.kernelHasFunction('bpf_rdonly_cast'),
    },
    attachment,
    kernelRelease: release(),
    pinRoot,
    capacity,
  });
  const table = await createPolicyTable({ native, maps: enforcer.maps, log, countFailure });
  const slots = createContainerSlots({
    maps: enforcer.maps,
    grace: createGracePeriod(native),
    hostMountNamespace,
    countFailure,
  });
  const events: ExecEvent[] = [];
  const kernel: Kernel = {
    native,
    report,
    enforcer,
    table,
    slots,
    tree,
    events,
    async counted(action) {
      const before = await enforcer.outcomes();
      await action();
      const after = await enforcer.outcomes();
      return Object.fromEntries(
        Object.entries(after)
          .map(([name, count]) => [name, Number(count - (before[name] ?? 0n))] as const)
          .filter(([, count]) => count !== 0),
      );
    },
    event: ({ text, ...fields }) =>
      eventually(`a record with ${JSON.stringify({ text, ...fields })}`, () =>
        events.find(
          (event) =>
            (text === undefined || Buffer.from(event.path).toString('latin1') === text) &&
            Object.entries(fields).every(([name, value]) => event[name as keyof ExecEvent] === value),
        ),
      ),
    bind(content, level) {
      enforcer.settings.coverLevels(level, level);
      return slots.bind(content);
    },
    async stop({ release: everything } = { release: true }) {
      await table.settled();
      await enforcer.stop({ release: everything });
    },
  };
  enforcer.startEvents(
    () => undefined,
    (batch) => void events.push(...batch),
  );
  return kernel;
}
