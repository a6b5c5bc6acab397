import { describe, expect, it } from 'vitest';
import type { BoundContainer } from '../containers/bound-container.ts';
import { createBootClock } from './boot-clock.ts';
import { decodeExecEvents, seenEntryAt } from './exec-record.ts';
import { EXEC_EVENT_LAYOUT, SEEN_KEY_LAYOUT, SEEN_VALUE_LAYOUT } from './gen/abi.ts';
import { readOutcomes, OUTCOME_NAMES } from './outcomes.ts';
import { openExampleMaps } from './kernel-maps-example.ts';
import { loadNative } from './native.ts';

const clock = createBootClock({ uptime: () => 100, now: () => 1_000_000 });
const { offsets: AT } = EXEC_EVENT_LAYOUT;

interface Fields {
  readonly kind?: number;
  readonly mode?: number;
  readonly reason?: number;
  readonly origin?: number;
  readonly path?: Uint8Array;
  readonly command?: Uint8Array;
  readonly pathBytes?: number;
}

function record(fields: Fields = {}): Buffer {
  const { kind = 2, mode = 2, reason = 1, origin = 1, path = Buffer.from('/bin/x'), command } = fields;
  const bytes = Buffer.alloc(EXEC_EVENT_LAYOUT.size + path.length);
  bytes.writeBigUInt64LE(90_000_000_000n, AT.time_ns);
  bytes.writeBigUInt64LE(4_711n, AT.cgroup);
  bytes.writeBigUInt64LE(0xfedc_ba98_7654_3210n, AT.path_hash);
  for (const [at, value] of [
    [AT.slot, 9],
    [AT.generation, 3],
    [AT.policy, 5],
    [AT.list, 6],
    [AT.pid, 123],
    [AT.parent_pid, 122],
    [AT.uid, 0xffff_fffe],
    [AT.path_bytes, fields.pathBytes ?? path.length],
  ] as const) {
    bytes.writeUInt32LE(value, at);
  }
  bytes.writeUInt8(kind, AT.kind);
  bytes.writeUInt8(mode, AT.mode);
  bytes.writeUInt8(reason, AT.reason);
  bytes.writeUInt8(origin, AT.origin);
  bytes.set(command ?? Buffer.from('sh'), AT.command);
  bytes.set(Buffer.from('0123456789abcdef'), AT.parent_command);
  bytes.set(path, EXEC_EVENT_LAYOUT.size);
  return bytes;
}

function decode(records: readonly Uint8Array[], container?: Pick<BoundContainer, 'listed'>) {
  const offsets = Uint32Array.from([
    0,
    ...records.map((_, i) => records.slice(0, i + 1).reduce((n, r) => n + r.length, 0)),
  ]);
  let undecodable = 0;
  const lookups: [number, number][] = [];
  const events = decodeExecEvents(
    { data: Buffer.concat(records), offsets },
    clock,
    (slot, generation) => {
      lookups.push([slot, generation]);
      return container as BoundContainer | undefined;
    },
    () => undecodable++,
  );
  return { events, undecodable, lookups };
}

describe('exec records', () => {
  it('are read with all that they say', () => {
    const { events, lookups } = decode([record()]);
    expect(events).toEqual([
      {
        kind: 'violation',
        key: '9.3.6.258.fedcba9876543210',
        timeMs: 990_000,
        slot: 9,
        generation: 3,
        cgroupId: 4_711n,
        container: undefined,
        path: Uint8Array.from(Buffer.from('/bin/x')),
        mode: 'protect',
        reason: 'Unlisted',
        origin: 'entrypoint',
        pid: 123,
        parentPid: 122,
        uid: 0xffff_fffe,
        command: 'sh',
        parentCommand: '0123456789abcdef',
      },
    ]);
    expect(lookups).toEqual([[9, 3]]);
  });

  it('have no mode and reason where they were learned', () => {
    const { events } = decode([record({ kind: 1, mode: 0, reason: 0, origin: 2 })]);
    expect(events).toMatchObject([{ kind: 'learned', mode: undefined, reason: undefined, origin: 'exec' }]);
  });

  it('tell a container that the policy does not name', () => {
    expect(decode([record()], { listed: false }).events).toMatchObject([{ reason: 'UnlistedContainer' }]);
    expect(decode([record()], { listed: true }).events).toMatchObject([{ reason: 'Unlisted' }]);
    expect(decode([record({ reason: 5 })], { listed: false }).events).toMatchObject([{ reason: 'Memfd' }]);
  });

  it('keep bytes as they are, and command names printable', () => {
    const { events } = decode([
      record({ path: Buffer.from([0x2f, 0xff, 0x0a]), command: Buffer.from('a\n\u001b[31m\u202e') }),
    ]);
    expect(events[0]?.path).toEqual(Uint8Array.from([0x2f, 0xff, 0x0a]));
    expect(events[0]?.command).toBe(String.raw`a\x0a\x1b[31m\xe2\x80\xae`);
  });

  it('do not hold on to the batch', () => {
    const { events } = decode([record(), record()]);
    expect(events[1]?.path.buffer.byteLength).toBe(6);
  });

  it('of all lengths of a path are read, the empty and the longest one too', () => {
    for (const length of [0, 1, 508, 4_095, 4_096]) {
      expect(decode([record({ path: new Uint8Array(length).fill(0x61) })]).events[0]?.path).toHaveLength(
        length,
      );
    }
  });

  it.each([
    ['cut short', record().subarray(0, 40)],
    ['empty', Buffer.alloc(0)],
    ['with a path beyond its end', record({ pathBytes: 7 })],
    ['with a path beyond all bounds', record({ pathBytes: 0xffff_ffff })],
    ['of no kind', record({ kind: 9 })],
    ['of a violation without a reason', record({ reason: 0 })],
    ['of an unknown reason', record({ reason: 200 })],
  ])('%s are left out and counted, and the others still read', (_, broken) => {
    const { events, undecodable } = decode([record(), broken, record()]);
    expect(undecodable).toBe(1);
    expect(events).toHaveLength(2);
  });
});

describe('counts of records', () => {
  it('have the key of the record that they repeat', () => {
    const keys = Buffer.alloc(SEEN_KEY_LAYOUT.size * 2);
    const values = Buffer.alloc(SEEN_VALUE_LAYOUT.size * 2);
    const base = SEEN_KEY_LAYOUT.size;
    keys.writeBigUInt64LE(0xfedc_ba98_7654_3210n, base + SEEN_KEY_LAYOUT.offsets.path_hash);
    keys.writeUInt32LE(9, base + SEEN_KEY_LAYOUT.offsets.slot);
    keys.writeUInt32LE(3, base + SEEN_KEY_LAYOUT.offsets.generation);
    keys.writeUInt32LE(6, base + SEEN_KEY_LAYOUT.offsets.list);
    keys.writeUInt32LE(2 | (1 << 8), base + SEEN_KEY_LAYOUT.offsets.mode_and_reason);
    values.writeBigUInt64LE(2n ** 40n, SEEN_VALUE_LAYOUT.size);
    values.writeBigUInt64LE(10_000_000_000n, SEEN_VALUE_LAYOUT.size + SEEN_VALUE_LAYOUT.offsets.first_ns);
    values.writeBigUInt64LE(20_000_000_000n, SEEN_VALUE_LAYOUT.size + SEEN_VALUE_LAYOUT.offsets.last_ns);
    const view = ({ buffer, byteOffset, byteLength }: Buffer) => new DataView(buffer, byteOffset, byteLength);
    const value = SEEN_VALUE_LAYOUT.size;
    const entry = seenEntryAt(view(keys), base, view(values), value, clock, () => undefined);
    expect(entry).toMatchObject({
      key: decode([record()]).events[0]?.key,
      count: 2n ** 40n,
      firstMs: 910_000,
      lastMs: 920_000,
      mode: 'protect',
      reason: 'Unlisted',
    });
  });

  it('of outcomes are those of all processors together', async () => {
    const { maps, close } = openExampleMaps(loadNative());
    const index = OUTCOME_NAMES.indexOf('denied');
    const key = Buffer.alloc(4);
    key.writeUInt32LE(index);
    const perProcessor = Buffer.alloc(maps.outcomes.valueBytes);
    for (let at = 0; at < perProcessor.length; at += 8) perProcessor.writeBigUInt64LE(5n, at);
    maps.outcomes.update(key, perProcessor);
    const outcomes = await readOutcomes(maps.outcomes);
    close();
    expect(outcomes['denied']).toBe(BigInt((perProcessor.length / 8) * 5));
    expect(outcomes['allowed']).toBe(0n);
    expect(Object.keys(outcomes)).toEqual(OUTCOME_NAMES);
  });
});
