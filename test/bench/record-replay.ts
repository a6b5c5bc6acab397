import type { BoundContainer } from '@runtime-enforcer/agent/containers/bound-container';
import { EventKind, EXEC_EVENT_LAYOUT, Mode, Origin, Reason } from '@runtime-enforcer/agent/kernel/gen/abi';
import type { RingBatch } from '@runtime-enforcer/agent/kernel/native';
import { workloadPaths } from './workload.ts';

/** As the agent's own bound for what one turn of the loop takes. */
const BATCH_MAX = 512;
const TICK_MS = 1;
/** The ring rounds records up to this. */
const RECORD_ALIGN_BYTES = 8;
const OFFSETS = EXEC_EVENT_LAYOUT.offsets;

/**
 * Delivers records as the kernel program writes them, evenly at a rate, until the returned function is called:
 * violations of containers that are held to a policy, and what containers that are learned start.
 *
 * The kernel tells each kind of record only once, until its table of kinds forgets it for others. With 32 containers
 * and 3,000 paths there are 12,000 kinds, three times as many as it holds, so all of them come again and again: the
 * worst that execs can do.
 */
export function replayRecords(options: {
  readonly perSecond: number;
  /** The containers that the records are to be about. */
  readonly slots: () => readonly BoundContainer[];
  readonly deliver: (batch: RingBatch) => void;
}): () => void {
  const { perSecond, slots, deliver } = options;
  const paths = workloadPaths().map((path) => Buffer.from(path));
  const start = performance.now();
  let delivered = 0;
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - start) / 1_000) * perSecond);
    const containers = slots();
    const count = Math.min(BATCH_MAX, due - delivered);
    if (count <= 0) return;
    if (containers.length > 0) deliver(batchOf(containers, paths, delivered, count));
    delivered += count;
  }, TICK_MS);
  return () => clearInterval(timer);
}

/** Records number `first` and following, each of another container in turn. */
export function batchOf(
  containers: readonly BoundContainer[],
  paths: readonly Buffer[],
  first: number,
  count: number,
): RingBatch {
  const records = Array.from({ length: count }, (_, index) => {
    const number = first + index;
    const container = containers[number % containers.length];
    const path = paths[number % paths.length];
    if (container === undefined || path === undefined) throw new RangeError('no containers or no paths');
    return recordOf(container, path, BigInt(number % paths.length));
  });
  const offsets = new Uint32Array(count + 1);
  let end = 0;
  records.forEach((record, index) => {
    end += record.length;
    offsets[index + 1] = end;
  });
  return { data: Buffer.concat(records, end), offsets };
}

function recordOf(container: BoundContainer, path: Buffer, pathHash: bigint): Buffer {
  const size = EXEC_EVENT_LAYOUT.size + path.length;
  const record = Buffer.alloc(Math.ceil(size / RECORD_ALIGN_BYTES) * RECORD_ALIGN_BYTES);
  const isLearned = container.state === 'learning';
  record.writeBigUInt64LE(process.hrtime.bigint(), OFFSETS.time_ns);
  record.writeBigUInt64LE(container.cgroupId, OFFSETS.cgroup);
  record.writeBigUInt64LE(pathHash, OFFSETS.path_hash);
  record.writeUInt32LE(container.slot, OFFSETS.slot);
  record.writeUInt32LE(container.generation, OFFSETS.generation);
  record.writeUInt32LE(1, OFFSETS.list);
  record.writeUInt32LE(container.pid, OFFSETS.pid);
  record.writeUInt32LE(1, OFFSETS.parent_pid);
  record.writeUInt32LE(path.length, OFFSETS.path_bytes);
  record.writeUInt8(isLearned ? EventKind.EVENT_LEARNED : EventKind.EVENT_VIOLATION, OFFSETS.kind);
  record.writeUInt8(isLearned ? Mode.MODE_NONE : Mode.MODE_MONITOR, OFFSETS.mode);
  record.writeUInt8(isLearned ? Reason.REASON_NONE : Reason.REASON_UNLISTED, OFFSETS.reason);
  record.writeUInt8(Origin.ORIGIN_ENTRYPOINT, OFFSETS.origin);
  record.write('tool', OFFSETS.command);
  record.write('sh', OFFSETS.parent_command);
  path.copy(record, EXEC_EVENT_LAYOUT.size);
  return record;
}
