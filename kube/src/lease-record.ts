import { isJsonObject, type KubeObject } from './kube-object.ts';

const MAX_LEASE_SECONDS = 3_600;

/** What a Lease says about who leads. */
export interface LeaseRecord {
  /** Empty when nobody does. */
  readonly holder: string;
  readonly leaseSeconds: number;
  readonly acquireTime: string;
  readonly renewTime: string;
  readonly transitions: number;
}

/** Reads a Lease. Whatever in it is missing or of a wrong type counts as nobody's. */
export function leaseRecordOf(lease: KubeObject): LeaseRecord {
  const spec = isJsonObject(lease['spec']) ? lease['spec'] : {};
  const text = (field: string): string => (typeof spec[field] === 'string' ? spec[field] : '');
  const number = (field: string): number => (Number.isSafeInteger(spec[field]) ? (spec[field] as number) : 0);
  return {
    holder: text('holderIdentity'),
    // Nobody holds a lease for days, whatever somebody wrote into it.
    leaseSeconds: Math.min(Math.max(number('leaseDurationSeconds'), 0), MAX_LEASE_SECONDS),
    acquireTime: text('acquireTime'),
    renewTime: text('renewTime'),
    transitions: Math.max(number('leaseTransitions'), 0),
  };
}

/** What a Lease's spec must be. */
export function leaseSpecOf(record: LeaseRecord): Record<string, unknown> {
  return {
    holderIdentity: record.holder,
    leaseDurationSeconds: record.leaseSeconds,
    acquireTime: record.acquireTime,
    renewTime: record.renewTime,
    leaseTransitions: record.transitions,
  };
}

/** A time as Lease fields need it: with six digits of the second. */
export function microTime(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}

/** A record, and when it was first seen as it is, by our own monotonic clock. */
export interface ObservedLease {
  readonly record: LeaseRecord;
  readonly seenAtMs: number;
}

/** Takes a record as it is read now. A holder's clock says nothing: only that its record has changed counts. */
export function observe(
  before: ObservedLease | undefined,
  record: LeaseRecord,
  nowMs: number,
): ObservedLease {
  const isSame = before !== undefined && JSON.stringify(before.record) === JSON.stringify(record);
  return isSame ? before : { record, seenAtMs: nowMs };
}

/** Whether somebody else may still be leading. */
export function isHeldByOther({ record, seenAtMs }: ObservedLease, identity: string, nowMs: number): boolean {
  if (record.holder === '' || record.holder === identity) return false;
  return nowMs < seenAtMs + record.leaseSeconds * 1_000;
}

/** The record by which `identity` takes the lease, or keeps it. */
export function claim(
  before: LeaseRecord | undefined,
  claimant: { readonly identity: string; readonly leaseSeconds: number; readonly now: Date },
): LeaseRecord {
  const time = microTime(claimant.now);
  const isRenewal = before?.holder === claimant.identity;
  return {
    holder: claimant.identity,
    leaseSeconds: claimant.leaseSeconds,
    acquireTime: isRenewal && before.acquireTime !== '' ? before.acquireTime : time,
    renewTime: time,
    transitions: before === undefined ? 0 : before.transitions + (isRenewal ? 0 : 1),
  };
}
