import { release } from 'node:os';
import { builtFiles } from '../built-files.ts';
import { CommandError } from '../commands/command-error.ts';
import type { RunOptions } from '../commands/run-options.ts';
import type { ContainerBinder } from '../containers/container-binder.ts';
import { createKernelBinder } from '../containers/kernel-binder.ts';
import { openCgroupTree } from '../containers/cgroup-tree.ts';
import { kernelReadings } from '../containers/kernel-bindings.ts';
import { createContainerSlots } from '../containers/container-slots.ts';
import { ownPlaceFrom } from '../containers/own-pods.ts';
import { readMountNamespace } from '../containers/running-programs.ts';
import type { CountFailure } from '../kernel/failures.ts';
import { createGracePeriod } from '../kernel/grace-period.ts';
import type { KernelEnforcer } from '../kernel/enforcer.ts';
import { openEnforcer } from '../kernel/open-enforcer.ts';
import { createPolicyTable, type LoadedPolicies } from '../policies/policy-table.ts';
import { loadNative, type Native } from '../kernel/native.ts';
import { acquireOwnership, DEFAULT_LOCK_PATH, type Ownership } from '../kernel/owner-lock.ts';
import { probeNode, type NodeReport } from '../kernel/probe.ts';
import type { Logger } from '../nri/handlers.ts';
import type { KernelReadings } from '../server/observer-server.ts';

/** Its mount namespace is the host's, in the host's pid namespace. */
const HOST_PID = 1;

/** What an agent stands on. */
export interface KernelSide {
  readonly enforcer: KernelEnforcer;
  readonly table: LoadedPolicies;
  readonly binder: ContainerBinder;
  readonly readings: KernelReadings;
}

/** The kernel side of a running agent, and the end of it. */
export interface OpenKernelSide extends KernelSide {
  /** `release` takes everything off this node; otherwise what is pinned goes on deciding. */
  close(options: { readonly release: boolean }): Promise<void>;
}

/** A node that was found fit for the agent, and is not touched yet. */
export interface FitNode {
  /** The file whose lock says who owns the node. */
  readonly lockPath: string;
  /** Waits until no other agent owns the node; `onWait` is called once if there is one. Rejects when `signal` aborts. */
  own(wait: {
    readonly signal: AbortSignal;
    readonly onWait: (sentence: string) => void;
  }): Promise<Pick<Ownership, 'release'>>;
  /** Throws an {@link OwnerBusyError} where another agent owns the node. */
  ownNow(): Promise<Pick<Ownership, 'release'>>;
  /**
   * Opens what decides on the node, for its owner only. Rejects with a NativeError if the program cannot be loaded;
   * what decided before then still does.
   */
  open(): Promise<OpenKernelSide>;
}

interface KernelSideParts {
  readonly options: RunOptions;
  readonly log: Logger;
  readonly failures: (place: string) => void;
}

/** Throws a {@link CommandError} that names everything this node lacks. */
export function findNodeFit(parts: KernelSideParts): FitNode {
  const { options, log } = parts;
  const { addon, probeObject } = builtFiles();
  const native = loadNative(addon);
  raiseMemlockLimit(native, log);
  const forced = options.attachment === 'auto' ? undefined : options.attachment;
  const report = probeNode(native, { objectPath: probeObject }, forced);
  refuseUnusable(report);
  return {
    lockPath: DEFAULT_LOCK_PATH,
    own: (wait) => acquireOwnership(native, DEFAULT_LOCK_PATH, wait),
    ownNow: () => acquireOwnership(native, DEFAULT_LOCK_PATH),
    open: () => open(native, report, parts),
  };
}

async function open(
  native: Native,
  report: NodeReport,
  { options, log, failures }: KernelSideParts,
): Promise<OpenKernelSide> {
  const { attachment } = report;
  if ('problem' in attachment) throw new CommandError(attachment.problem);
  const tree = await openCgroupTree(native);
  const hostMountNamespace = await readMountNamespace(HOST_PID);
  const countFailure: CountFailure = failures;
  const enforcer = await openEnforcer({
    native,
    log,
    countFailure,
    objectPath: builtFiles().enforcerObject,
    facts: {
      hostMountNamespace,
      cgroupSubsystem: tree.subsystem,
      largeKeys: report.largeKeys,
      typedCast: native.kernelHasFunction('bpf_rdonly_cast'),
    },
    attachment,
    kernelRelease: release(),
    ...(options.capacity !== undefined && { capacity: options.capacity }),
  });
  try {
    const { maps, settings } = enforcer;
    const table = await createPolicyTable({ native, maps, log, countFailure });
    const binder = createKernelBinder({
      native,
      tree,
      slots: createContainerSlots({
        maps,
        grace: createGracePeriod(native),
        hostMountNamespace,
        countFailure,
      }),
      settings,
      table,
      learning: options.learnDirectory !== undefined || options.cluster?.learningSelector !== undefined,
      own: ownPlaceFrom(process.env),
      log,
      countFailure,
    });
    return {
      enforcer,
      table,
      binder,
      readings: kernelReadings(native, tree, maps, hostMountNamespace),
      async close({ release: everything }) {
        await table.settled();
        await enforcer.stop({ release: everything });
      },
    };
  } catch (error) {
    await enforcer.stop({ release: false });
    throw error;
  }
}

/** Before 5.11 maps count against the limit; later kernels do not look at it. */
function raiseMemlockLimit(native: Native, log: Logger): void {
  try {
    native.raiseMemlockLimit();
  } catch (error) {
    log.warn(
      { err: error },
      'the limit of locked memory cannot be raised; before Linux 5.11 maps may not fit',
    );
  }
}

function refuseUnusable({ findings, usable, attachment }: NodeReport): void {
  const missing = findings.filter(({ state }) => state === 'missing').map(({ sentence }) => sentence);
  if ('problem' in attachment && !missing.includes(attachment.problem)) missing.push(attachment.problem);
  if (usable && missing.length === 0) return;
  throw new CommandError(`this node cannot run the agent: ${missing.join(' ')}`);
}
