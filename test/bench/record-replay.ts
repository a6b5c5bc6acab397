import { uptime } from 'node:os';
import type { BoundContainer } from '@runtime-enforcer/agent/containers/bound-container';
import {
  EventKind,
  EXEC_EVENT_LAYOUT,
  Mode,
  Origin,
  Reason,
  SEEN_KEY_LAYOUT,
  SEEN_VALUE_LAYOUT,
} from '@runtime-enforcer/agent/kernel/gen/abi';
import type { MapEntries, RingBatch } from '@runtime-enforcer/agent/kernel/native';
import { workloadPaths } from './workload.ts';

/** As the agent's own bound for what one turn of the loop takes. */
const BATCH_MAX = 512;
const TICK_MS = 1;
/**
 * Kinds are put into the kernel's table this many records at a time, before those come: each write is a job of a thread,
 * and the program that this stands for needs none.
 */
const MARKED_AT_ONCE = 128;
/** The ring rounds records up to this. */
const RECORD_ALIGN_BYTES = 8;
/** Position of the reason beside the mode in a key of the kernel's table of kinds. */
const REASON_SHIFT = 8;
/** Any list: nobody looks it up. */
const LIST = 1;
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
  /** How many kinds the kernel's table holds. */
  readonly kindsMax: number;
  /** Puts kinds into that table, as the program does for each record. */
  readonly mark: (kinds: MapEntries) => void;
}): () => void {
  const { perSecond, slots, deliver, kindsMax, mark } = options;
  const paths = workloadPaths().map((path) => Buffer.from(path));
  mark(seenOf(slots(), paths, 0, kindsMax));
  const start = performance.now();
  let delivered = 0;
  let marked = 0;
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - start) / 1_000) * perSecond);
    const containers = slots();
    const count = Math.min(BATCH_MAX, due - delivered);
    if (count <= 0) return;
    if (containers.length > 0) {
      if (delivered + count > marked) {
        const most = Math.max(count, MARKED_AT_ONCE);
        mark(seenOf(containers, paths, delivered, most));
        marked = delivered + most;
      }
      deliver(batchOf(containers, paths, delivered, count));
    }
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
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const offsets = new Uint32Array(count + 1);
  numbers.forEach((number, index) => {
    const size = EXEC_EVENT_LAYOUT.size + itemAt(paths, number).length;
    offsets[index + 1] = (offsets[index] ?? 0) + Math.ceil(size / RECORD_ALIGN_BYTES) * RECORD_ALIGN_BYTES;
  });
  const data = Buffer.alloc(offsets[count] ?? 0);
  numbers.forEach((number, index) => {
    const pathHash = BigInt(number % paths.length);
    writeRecord(data, offsets[index] ?? 0, itemAt(containers, number), itemAt(paths, number), pathHash);
  });
  return { data, offsets };
}

/** What the kernel's table of kinds holds of the records number `first` and following, when they have just come. */
function seenOf(
  containers: readonly BoundContainer[],
  paths: readonly Buffer[],
  first: number,
  count: number,
): MapEntries {
  const keys = Buffer.alloc(count * SEEN_KEY_LAYOUT.size);
  const values = Buffer.alloc(count * SEEN_VALUE_LAYOUT.size);
  const bootNs = BigInt(Math.round(uptime() * 1e9));
  for (let index = 0; index < count; index++) {
    const number = first + index;
    const { slot, generation, state } = itemAt(containers, number);
    const [key, value] = [index * SEEN_KEY_LAYOUT.size, index * SEEN_VALUE_LAYOUT.size];
    const kind =
      state === 'learning' ? Mode.MODE_NONE : Mode.MODE_MONITOR | (Reason.REASON_UNLISTED << REASON_SHIFT);
    keys.writeBigUInt64LE(BigInt(number % paths.length), key + SEEN_KEY_LAYOUT.offsets.path_hash);
    keys.writeUInt32LE(slot, key + SEEN_KEY_LAYOUT.offsets.slot);
    keys.writeUInt32LE(generation, key + SEEN_KEY_LAYOUT.offsets.generation);
    keys.writeUInt32LE(LIST, key + SEEN_KEY_LAYOUT.offsets.list);
    keys.writeUInt32LE(kind, key + SEEN_KEY_LAYOUT.offsets.mode_and_reason);
    values.writeBigUInt64LE(1n, value + SEEN_VALUE_LAYOUT.offsets.count);
    values.writeBigUInt64LE(bootNs, value + SEEN_VALUE_LAYOUT.offsets.first_ns);
    values.writeBigUInt64LE(bootNs, value + SEEN_VALUE_LAYOUT.offsets.last_ns);
  }
  return { keys, values, count };
}

function itemAt<T>(items: readonly T[], number: number): T {
  const item = items[number % items.length];
  if (item === undefined) throw new RangeError('records need a container and a path');
  return item;
}

function writeRecord(
  data: Buffer,
  at: number,
  container: BoundContainer,
  path: Buffer,
  pathHash: bigint,
): void {
  const isLearned = container.state === 'learning';
  data.writeBigUInt64LE(process.hrtime.bigint(), at + OFFSETS.time_ns);
  data.writeBigUInt64LE(container.cgroupId, at + OFFSETS.cgroup);
  data.writeBigUInt64LE(pathHash, at + OFFSETS.path_hash);
  data.writeUInt32LE(container.slot, at + OFFSETS.slot);
  data.writeUInt32LE(container.generation, at + OFFSETS.generation);
  data.writeUInt32LE(LIST, at + OFFSETS.list);
  data.writeUInt32LE(container.pid, at + OFFSETS.pid);
  data.writeUInt32LE(1, at + OFFSETS.parent_pid);
  data.writeUInt32LE(path.length, at + OFFSETS.path_bytes);
  data[at + OFFSETS.kind] = isLearned ? EventKind.EVENT_LEARNED : EventKind.EVENT_VIOLATION;
  data[at + OFFSETS.mode] = isLearned ? Mode.MODE_NONE : Mode.MODE_MONITOR;
  data[at + OFFSETS.reason] = isLearned ? Reason.REASON_NONE : Reason.REASON_UNLISTED;
  data[at + OFFSETS.origin] = Origin.ORIGIN_ENTRYPOINT;
  data.write('tool', at + OFFSETS.command, 'latin1');
  data.write('sh', at + OFFSETS.parent_command, 'latin1');
  path.copy(data, at + EXEC_EVENT_LAYOUT.size);
}
