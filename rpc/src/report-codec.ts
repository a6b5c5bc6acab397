import { fieldError, formatFieldError, type Parsed } from '@runtime-enforcer/api/field-error';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { cursorFromWire, cursorToWire, type WireCursor } from './cursor-codec.ts';
import { mappedCodec, type MessageCodec } from './message-codec.ts';
import { observationFromWire, observationToWire, type WireObservation } from './observation-codec.ts';
import { policiesFromWire, policiesToWire, type WirePolicy } from './policy-codec.ts';
import { assertReadable } from './report-size.ts';
import type {
  NodeReport,
  NodeState,
  ReportedEntry,
  ReportedPage,
  ReportedPolicies,
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
const codec = mappedCodec(MESSAGE, reportToWire, reportFromWire);

/** `Report` of proto/agent.proto. */
export const reportCodec: MessageCodec<NodeReport> = {
  encode: (report) => codec.encode(report),
  decode(bytes) {
    try {
      assertReadable(bytes);
    } catch (cause) {
      throw new Error(`${bytes.length} bytes are not a valid ${MESSAGE} message`, { cause });
    }
    return codec.decode(bytes);
  },
};

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

function reportFromWire({ node, policies, violations, observations }: WireReport): NodeReport {
  return {
    ...(node && { node: nodeFromWire(node) }),
    ...(policies && { policies: policyPageFromWire(policies) }),
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
