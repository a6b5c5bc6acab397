import { displayExecutable } from '@runtime-enforcer/api/executable-path';
import type { ViolationReason } from '@runtime-enforcer/api/violation';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { BootClock } from './boot-clock.ts';
import type { ContainerLookup, ExecEvent, KernelOrigin, RecordKey, SeenEntry } from './enforcer.ts';
import {
  COMMAND_BYTES,
  EventKind,
  EXEC_EVENT_LAYOUT,
  Mode,
  Origin,
  PATH_BYTES_MAX,
  Reason,
  SEEN_KEY_LAYOUT,
  SEEN_VALUE_LAYOUT,
} from './gen/abi.ts';
import type { RingBatch } from './native.ts';

const REASONS: ReadonlyMap<number, ViolationReason> = new Map([
  [Reason.REASON_UNLISTED, 'Unlisted'],
  [Reason.REASON_UNRESOLVED, 'Unresolved'],
  [Reason.REASON_TOO_LONG, 'TooLong'],
  [Reason.REASON_UNLINKED, 'Unlinked'],
  [Reason.REASON_MEMFD, 'Memfd'],
  [Reason.REASON_FOREIGN_MOUNT, 'ForeignMount'],
  [Reason.REASON_OTHER_MOUNT_NAMESPACE, 'OtherMountNamespace'],
  [Reason.REASON_NO_SCRATCH, 'NoScratch'],
  [Reason.REASON_NO_POLICY, 'NoPolicy'],
]);

const ORIGINS: ReadonlyMap<number, KernelOrigin> = new Map([
  [Origin.ORIGIN_ENTRYPOINT, 'entrypoint'],
  [Origin.ORIGIN_EXEC, 'exec'],
]);

/** Longest path text of a record: what could be read of a path that is too long, too. */
const PATH_TEXT_MAX_BYTES = PATH_BYTES_MAX + 1;

const EVENT = EXEC_EVENT_LAYOUT.offsets;
const SEEN_KEY = SEEN_KEY_LAYOUT.offsets;
const SEEN_VALUE = SEEN_VALUE_LAYOUT.offsets;

/**
 * Reads the records of one batch. What is no record of this ABI is left out and reported to `undecodable`: it
 * cannot come from the program, and must not end the agent.
 */
export function decodeExecEvents(
  { data, offsets }: RingBatch,
  clock: BootClock,
  lookup: ContainerLookup,
  undecodable: () => void,
): ExecEvent[] {
  const events: ExecEvent[] = [];
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  for (let i = 0; i + 1 < offsets.length; i++) {
    const event = decodeExecEvent(view, offsets[i] ?? 0, offsets[i + 1] ?? 0, clock, lookup);
    if (event === undefined) undecodable();
    else events.push(event);
  }
  return events;
}

function decodeExecEvent(
  view: DataView,
  start: number,
  end: number,
  clock: BootClock,
  lookup: ContainerLookup,
): ExecEvent | undefined {
  const pathStart = start + EXEC_EVENT_LAYOUT.size;
  if (pathStart > end || end > view.byteLength) return undefined;
  const u32 = (offset: number): number => view.getUint32(start + offset, true);
  const pathBytes = u32(EVENT.path_bytes);
  // The ring rounds a record up to eight bytes; it never cuts it.
  if (pathBytes > PATH_TEXT_MAX_BYTES || pathStart + pathBytes > end) return undefined;

  const kind = kindOf(view.getUint8(start + EVENT.kind));
  const mode = view.getUint8(start + EVENT.mode);
  const reason = view.getUint8(start + EVENT.reason);
  if (kind === undefined || (kind === 'violation' && !REASONS.has(reason))) return undefined;

  const slot = u32(EVENT.slot);
  const generation = u32(EVENT.generation);
  const container = lookup(slot, generation);
  return {
    kind,
    key: recordKey(
      slot,
      generation,
      u32(EVENT.list),
      mode | (reason << 8),
      view.getBigUint64(start + EVENT.path_hash, true),
    ),
    timeMs: clock.epochMs(view.getBigUint64(start + EVENT.time_ns, true)),
    slot,
    generation,
    cgroupId: view.getBigUint64(start + EVENT.cgroup, true),
    container,
    path: bytesAt(view, pathStart, pathBytes).slice(),
    mode: modeOf(mode),
    reason: reasonOf(reason, container),
    origin: ORIGINS.get(view.getUint8(start + EVENT.origin)) ?? 'unknown',
    pid: u32(EVENT.pid),
    parentPid: u32(EVENT.parent_pid),
    uid: u32(EVENT.uid),
    command: commandAt(view, start + EVENT.command),
    parentCommand: commandAt(view, start + EVENT.parent_command),
  };
}

/** Reads one entry of the `seen` map, whose key and value begin at these offsets. */
export function seenEntryAt(
  keys: DataView,
  key: number,
  values: DataView,
  value: number,
  clock: BootClock,
  lookup: ContainerLookup,
): SeenEntry {
  const slot = keys.getUint32(key + SEEN_KEY.slot, true);
  const generation = keys.getUint32(key + SEEN_KEY.generation, true);
  const modeAndReason = keys.getUint32(key + SEEN_KEY.mode_and_reason, true);
  const pathHash = keys.getBigUint64(key + SEEN_KEY.path_hash, true);
  const container = lookup(slot, generation);
  return {
    key: recordKey(slot, generation, keys.getUint32(key + SEEN_KEY.list, true), modeAndReason, pathHash),
    slot,
    generation,
    container,
    pathHash,
    mode: modeOf(modeAndReason & 255),
    reason: reasonOf((modeAndReason >> 8) & 255, container),
    count: values.getBigUint64(value + SEEN_VALUE.count, true),
    firstMs: clock.epochMs(values.getBigUint64(value + SEEN_VALUE.first_ns, true)),
    lastMs: clock.epochMs(values.getBigUint64(value + SEEN_VALUE.last_ns, true)),
  };
}

function recordKey(slot: number, generation: number, list: number, modeAndReason: number, hash: bigint) {
  return `${slot}.${generation}.${list}.${modeAndReason}.${hash.toString(16)}` as RecordKey;
}

function kindOf(kind: number): ExecEvent['kind'] | undefined {
  if (kind === EventKind.EVENT_VIOLATION) return 'violation';
  return kind === EventKind.EVENT_LEARNED ? 'learned' : undefined;
}

function modeOf(mode: number): ExecEvent['mode'] {
  if (mode === Mode.MODE_MONITOR) return 'monitor';
  return mode === Mode.MODE_PROTECT ? 'protect' : undefined;
}

/** The kernel knows an empty list, not that the policy leaves its container out. */
function reasonOf(reason: number, container: BoundContainer | undefined): ViolationReason | undefined {
  const name = REASONS.get(reason);
  return name === 'Unlisted' && container?.listed === false ? 'UnlistedContainer' : name;
}

/** A task's name: up to 15 bytes of the tenant's choice and a zero. */
function commandAt(view: DataView, start: number): string {
  const bytes = bytesAt(view, start, COMMAND_BYTES);
  const end = bytes.indexOf(0);
  return displayExecutable(end < 0 ? bytes : bytes.subarray(0, end), 'file');
}

function bytesAt(view: DataView, start: number, length: number): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset + start, length);
}
