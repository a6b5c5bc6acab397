import { fieldError, formatFieldError, type Parsed } from '@runtime-enforcer/api/field-error';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { cursorFromWire, cursorToWire, type WireCursor } from './cursor-codec.ts';
import { mappedCodec, type MessageCodec } from './message-codec.ts';
import { eachField } from './message-fields.ts';
import { observationFromWire, observationToWire, type WireObservation } from './observation-codec.ts';
import { policiesFromWire, policiesToWire, type WirePolicy } from './policy-codec.ts';
import { type PolicyEntryPool, policyEntryPool } from './policy-entry-pool.ts';
import { assertReadable } from './report-size.ts';
import type {
  NodeReport,
  NodeState,
  ReportedEntry,
  ReportedPage,
  ReportedPolicies,
  ReportedPolicy,
  ReportedViolation,
} from './reported.ts';
import { violationFromWire, violationToWire, type WireViolation } from './violation-codec.ts';
import {
  timestampFromWire,
  timestampToWire,
  wireText,
  type WireLong,
  type WireTimestamp,
} from './wire-values.ts';

type WireNode = Omit<NodeState, 'startedAt'> & { readonly startedAt: WireTimestamp | null };

interface WirePolicies {
  readonly cursor: WireCursor | null;
  readonly resync: boolean;
  readonly policies: Readonly<Record<string, WirePolicy>>;
  readonly removed: readonly string[];
  readonly more: boolean;
}

interface WirePage<E> {
  readonly cursor: WireCursor | null;
  readonly resync: boolean;
  readonly entries: readonly E[];
  readonly more: boolean;
}

interface WireViolationEntry {
  readonly sequence: WireLong;
  readonly violation: WireViolation | null;
  readonly previousOccurrences: WireLong;
}

interface WireObservationEntry {
  readonly sequence: WireLong;
  readonly observation: WireObservation | null;
  readonly previousCount: WireLong;
}

interface WireReport {
  readonly node: WireNode | null;
  readonly policies: WirePolicies | null;
  readonly violations: WirePage<WireViolationEntry> | null;
  readonly observations: WirePage<WireObservationEntry> | null;
}

/** Longest that a text of an agent's about itself is taken over. */
const MAX_NODE_TEXT_CHARACTERS = 1024;
/** Refused entries of a page whose reason is told. */
const MAX_REFUSALS = 5;

const MESSAGE = 'runtimeenforcer.agent.v1.Report';
/** Number of the policies' page in a report, and of an entry in that page. */
const POLICIES_FIELD = 2;
const ENTRY_FIELD = 3;

const codec = mappedCodec(MESSAGE, reportToWire, reportFromWire, { isExact: true });
const policiesCodec = mappedCodec(
  'runtimeenforcer.agent.v1.PolicyPage',
  policyPageToWire,
  policyPageFromWire,
);

/** `Report` of proto/agent.proto. */
export const reportCodec: MessageCodec<NodeReport> = {
  encode: (report) => codec.encode(report),
  decode: (bytes) => readReport(bytes, policyEntryPool()),
};

/**
 * Reads a report.
 * @param pool of the policies in it
 * @throws Error that names the message type if `bytes` are not such a message
 */
export function readReport(bytes: Uint8Array, pool: PolicyEntryPool): NodeReport {
  try {
    assertReadable(bytes);
    const others: Uint8Array[] = [];
    const pages: Uint8Array[] = [];
    eachField(bytes, (number, start, content, end) => {
      if (number === POLICIES_FIELD) pages.push(bytes.subarray(content, end));
      else others.push(bytes.subarray(start, end));
    });
    if (pages.length === 0) return codec.decode(bytes);
    return { ...codec.decode(joined(others)), policies: readPolicies(joined(pages), pool) };
  } catch (cause) {
    throw new Error(`${bytes.length} bytes are not a valid ${MESSAGE} message`, { cause });
  }
}

/** Each field of a page is, for itself, a page of one. */
function readPolicies(page: Buffer, pool: PolicyEntryPool): ReportedPolicies {
  const others: Uint8Array[] = [];
  const policies = new Map<string, ReportedPolicy>();
  eachField(page, (number, start, _, end) => {
    if (number !== ENTRY_FIELD) {
      others.push(page.subarray(start, end));
      return;
    }
    const entry = pool.take(page.toString('latin1', start, end), () => {
      const [only] = policiesCodec.decode(page.subarray(start, end)).policies;
      return only;
    });
    if (entry !== undefined) policies.set(entry[0], entry[1]);
  });
  return { ...policiesCodec.decode(joined(others)), policies };
}

function joined(parts: readonly Uint8Array[]): Buffer {
  const [first] = parts;
  if (first === undefined || parts.length > 1) return Buffer.concat(parts);
  return Buffer.from(first.buffer, first.byteOffset, first.byteLength);
}

function reportToWire({ node, policies, violations, observations }: NodeReport): WireReport {
  return {
    node: node === undefined ? null : nodeToWire(node),
    policies: policies === undefined ? null : policyPageToWire(policies),
    violations:
      violations === undefined
        ? null
        : pageToWire(violations, ({ sequence, value, previousCount }) => ({
            sequence,
            violation: violationToWire(value),
            previousOccurrences: previousCount,
          })),
    observations:
      observations === undefined
        ? null
        : pageToWire(observations, ({ sequence, value, previousCount }) => ({
            sequence,
            observation: observationToWire(value),
            previousCount,
          })),
  };
}

/** But for the policies. */
function reportFromWire({ node, violations, observations }: WireReport): NodeReport {
  return {
    ...(node && { node: nodeFromWire(node) }),
    ...(violations && { violations: pageFromWire(violations, violationEntryFromWire) }),
    ...(observations && { observations: pageFromWire(observations, observationEntryFromWire) }),
  };
}

function nodeToWire(node: NodeState): WireNode {
  return { ...boundedTexts(node), startedAt: timestampToWire(node.startedAt) };
}

function nodeFromWire(node: WireNode): NodeState {
  return boundedTexts({ ...node, startedAt: timestampFromWire(node.startedAt) });
}

function boundedTexts<T extends NodeState>(node: T): T {
  const bounded = Object.entries(node).map(([key, value]: [string, unknown]) => [
    key,
    typeof value === 'string' ? wireText(value.slice(0, MAX_NODE_TEXT_CHARACTERS)) : value,
  ]);
  return Object.fromEntries(bounded) as T;
}

function policyPageToWire({ cursor, resync, policies, removed, more }: ReportedPolicies): WirePolicies {
  return {
    cursor: cursorToWire(cursor),
    resync,
    policies: policiesToWire(policies),
    removed: removed.map(wireText),
    more,
  };
}

function policyPageFromWire({ cursor, resync, policies, removed, more }: WirePolicies): ReportedPolicies {
  return { cursor: cursorFromWire(cursor), resync, policies: policiesFromWire(policies), removed, more };
}

function pageToWire<T, E>(
  { cursor, resync, entries, more }: ReportedPage<T>,
  entryToWire: (entry: ReportedEntry<T>) => E,
): WirePage<E> {
  return { cursor: cursorToWire(cursor), resync, entries: entries.map(entryToWire), more };
}

function pageFromWire<T, E>(
  { cursor, resync, entries, more }: WirePage<E>,
  entryFromWire: (entry: E) => Parsed<ReportedEntry<T>>,
): ReportedPage<T> {
  const accepted: ReportedEntry<T>[] = [];
  const refusals: string[] = [];
  let refused = 0;
  for (const entry of entries) {
    const parsed = entryFromWire(entry);
    if (parsed.ok) accepted.push(parsed.value);
    else if (++refused <= MAX_REFUSALS) refusals.push(parsed.errors.map(formatFieldError).join('; '));
  }
  return { cursor: cursorFromWire(cursor), resync, entries: accepted, more, refused, refusals };
}

function violationEntryFromWire(entry: WireViolationEntry): Parsed<ReportedEntry<ReportedViolation>> {
  if (entry.violation === null) return absent('violation');
  const { sequence, previousOccurrences } = entry;
  return entryOf(
    violationFromWire(entry.violation),
    ({ occurrences }) => occurrences,
    sequence,
    previousOccurrences,
  );
}

function observationEntryFromWire(entry: WireObservationEntry): Parsed<ReportedEntry<NodeObservation>> {
  if (entry.observation === null) return absent('observation');
  const { sequence, previousCount } = entry;
  return entryOf(observationFromWire(entry.observation), ({ count }) => count, sequence, previousCount);
}

function entryOf<T>(
  parsed: Parsed<T>,
  countOf: (value: T) => number,
  sequence: WireLong,
  previous: WireLong,
): Parsed<ReportedEntry<T>> {
  if (!parsed.ok) return parsed;
  const { value } = parsed;
  const previousCount = Number(previous);
  if (previousCount > countOf(value)) {
    const message = `the entry before counted ${previousCount}, and this one ${countOf(value)}`;
    return { ok: false, errors: [fieldError(['previous'], { message, expected: 'counts that only rise' })] };
  }
  const place = Number(sequence);
  // A status that holds it would be refused, and with it what all other agents tell of the object.
  if (!Number.isSafeInteger(place)) {
    const message = `${sequence} is out of range`;
    return { ok: false, errors: [fieldError(['sequence'], { message, expected: 'the place of the entry' })] };
  }
  return { ok: true, value: { sequence: place, value, previousCount } };
}

function absent(field: string): Parsed<never> {
  return {
    ok: false,
    errors: [fieldError([field], { message: 'the entry holds none', expected: `the ${field}` })],
  };
}
