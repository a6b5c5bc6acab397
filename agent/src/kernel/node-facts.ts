import { readFileSync } from 'node:fs';
import { arch, release, version } from 'node:os';
import { gunzipSync } from 'node:zlib';

import { isNativeError, type Native } from './native.ts';

const CGROUP2_MAGIC = 0x63677270;
const BPF_FS_MAGIC = 0xcafe4a11;
const MAP_TYPE_HASH = 1;
const MAP_TYPE_RINGBUF = 27;
const NO_PREALLOC = 1;
const LARGE_KEY_BYTES = 4100;

/** What came of trying something in the kernel: it works, or the errno's name and the whole message. */
export type Attempt =
  { readonly works: true } | { readonly works: false; readonly code: string; readonly message: string };

/** What was read of this node, without any judgement. A file that is not there is undefined. */
export interface NodeFacts {
  /** uname -m as Node names it: 'x64', 'arm64'. */
  readonly architecture: string;
  /** uname -r */
  readonly release: string;
  /** uname -v */
  readonly version: string;
  readonly kernelBtf: boolean;
  /** The CapEff line of /proc/self/status, hexadecimal. */
  readonly effectiveCapabilities: string | undefined;
  /** /sys/kernel/security/lockdown: 'none [integrity] confidentiality'. */
  readonly lockdown: string | undefined;
  /** /sys/kernel/security/lsm: 'lockdown,capability,landlock,bpf'. */
  readonly lsmList: string | undefined;
  readonly ringBuffer: Attempt;
  readonly largeKeys: Attempt;
  /** Load and attach of the smallest program; it is detached again. */
  readonly lsmProgram: Attempt;
  readonly fmodRetProgram: Attempt;
  /** statfs magic of /sys/fs/bpf, /sys/fs/cgroup and /sys/fs/cgroup/unified. */
  readonly bpfFsMagic: number | undefined;
  readonly cgroupMagic: number | undefined;
  readonly unifiedCgroupMagic: number | undefined;
  /** /sys/kernel/debug/sched/preempt: 'none (voluntary) full'. */
  readonly schedPreempt: string | undefined;
  /** /proc/cmdline */
  readonly commandLine: string | undefined;
  /** The CONFIG_PREEMPT lines of /proc/config.gz, else of /boot/config-<release>. */
  readonly kernelConfig: string | undefined;
}

/** Where the facts come from; tests and containers with the host mounted elsewhere give other places. */
export interface FactSources {
  /** Path of the compiled probe.bpf.c. */
  readonly objectPath: string;
  readonly bpfFs?: string;
  readonly cgroupFs?: string;
}

/** Whether a directory holds a BPF or cgroup v2 file system, by its statfs magic. */
export const isBpfFs = (magic: number | undefined): boolean => magic === BPF_FS_MAGIC;
export const isCgroup2 = (magic: number | undefined): boolean => magic === CGROUP2_MAGIC;

/** Reads and tries everything. Leaves nothing loaded; throws only if the addon is not what it says. */
export function gatherNodeFacts(native: Native, sources: FactSources): NodeFacts {
  const { objectPath, bpfFs = '/sys/fs/bpf', cgroupFs = '/sys/fs/cgroup' } = sources;
  return {
    architecture: arch(),
    release: release(),
    version: version(),
    kernelBtf: native.hasKernelBtf(),
    effectiveCapabilities: /^CapEff:\s*([0-9a-f]+)$/m.exec(readText('/proc/self/status') ?? '')?.[1],
    lockdown: readText('/sys/kernel/security/lockdown'),
    lsmList: readText('/sys/kernel/security/lsm'),
    ringBuffer: attempt(() => tryMap(native, MAP_TYPE_RINGBUF, 0, 0, 65536, 0)),
    largeKeys: attempt(() => tryMap(native, MAP_TYPE_HASH, LARGE_KEY_BYTES, 4, 1, NO_PREALLOC)),
    lsmProgram: attempt(() => tryProgram(native, objectPath, 'probe_lsm')),
    fmodRetProgram: attempt(() => tryProgram(native, objectPath, 'probe_fmod_ret')),
    bpfFsMagic: magicOf(native, bpfFs),
    cgroupMagic: magicOf(native, cgroupFs),
    unifiedCgroupMagic: magicOf(native, `${cgroupFs}/unified`),
    schedPreempt: readText('/sys/kernel/debug/sched/preempt'),
    commandLine: readText('/proc/cmdline'),
    kernelConfig: readKernelConfig(),
  };
}

function attempt(action: () => void): Attempt {
  try {
    action();
    return { works: true };
  } catch (error) {
    if (!isNativeError(error)) throw error;
    return { works: false, code: error.code, message: error.message };
  }
}

function tryMap(
  native: Native,
  type: number,
  keySize: number,
  valueSize: number,
  maxEntries: number,
  flags: number,
): void {
  native.createMap({ name: 'probe', type, keySize, valueSize, maxEntries, flags }).close();
}

function tryProgram(native: Native, objectPath: string, name: string): void {
  const object = native.load(objectPath, { programs: [name] });
  try {
    object.programs.get(name)?.attach().close();
  } finally {
    object.close();
  }
}

function magicOf(native: Native, path: string): number | undefined {
  try {
    return native.filesystemType(path).magic;
  } catch (error) {
    if (isNativeError(error)) return undefined;
    throw error;
  }
}

/** From here, or as the first process sees it: a container has neither the node's securityfs nor its debugfs or /boot. */
function readText(path: string): string | undefined {
  for (const place of [path, `/proc/1/root${path}`]) {
    try {
      return readFileSync(place, 'utf8').trim();
    } catch {
      continue;
    }
  }
  return undefined;
}

function readKernelConfig(): string | undefined {
  let config: string | undefined;
  try {
    config = gunzipSync(readFileSync('/proc/config.gz')).toString();
  } catch {
    config = readText(`/boot/config-${release()}`);
  }
  return config
    ?.split('\n')
    .filter((line) => line.startsWith('CONFIG_PREEMPT'))
    .join('\n');
}
