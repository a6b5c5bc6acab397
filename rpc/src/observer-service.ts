import { bindingFromWire, bindingToWire, type WireBinding } from './binding-codec.ts';
import { cursorFromWire, cursorToWire, type WireCursor } from './cursor-codec.ts';
import { mappedCodec, messageCodec } from './message-codec.ts';
import { podFromWire, podToWire, type WirePod } from './pod-codec.ts';
import { policiesFromWire, policiesToWire, type WirePolicy } from './policy-codec.ts';
import { reportCodec } from './report-codec.ts';
import {
  NO_CURSOR,
  type Cursor,
  type ReportedBinding,
  type ReportedPod,
  type ReportedPolicy,
  type WatchCursors,
} from './reported.ts';
import { method } from './service-method.ts';

/** Full name of the service in proto/agent.proto. */
export const OBSERVER_SERVICE = 'runtimeenforcer.agent.v1.AgentObserver';

/** What an `Acknowledge` call tells: what was read up to there is stored. */
export interface Acknowledgement {
  readonly violations?: Cursor;
  readonly observations?: Cursor;
}

/** False for a cursor that was left out, or is of another incarnation and therefore did nothing. */
export interface AcknowledgeResult {
  readonly violationsAccepted: boolean;
  readonly observationsAccepted: boolean;
}

export interface PolicyListRequest {
  /** Of the page before; empty for the first. */
  readonly pageToken: string;
}

export interface PolicyListPage {
  /** By `namespace/name`. */
  readonly policies: ReadonlyMap<string, ReportedPolicy>;
  /** Empty in the last page. */
  readonly nextPageToken: string;
}

export interface PodListRequest {
  readonly pageToken: string;
  /** Empty for all. */
  readonly namespace: string;
  readonly podName: string;
}

export interface PodListPage {
  readonly pods: readonly ReportedPod[];
  readonly nextPageToken: string;
}

export interface BindingListRequest {
  readonly pageToken: string;
}

export interface BindingListPage {
  /** By rising cgroup id, then slot. */
  readonly bindings: readonly ReportedBinding[];
  readonly nextPageToken: string;
}

const PACKAGE = 'runtimeenforcer.agent.v1';

type WireCursors<K extends string> = Readonly<Record<K, WireCursor | null>>;

const watchRequest = mappedCodec<WireCursors<'policies' | 'violations' | 'observations'>, WatchCursors>(
  `${PACKAGE}.WatchRequest`,
  ({ policies, violations, observations }) => ({
    policies: cursorToWire(policies),
    violations: cursorToWire(violations),
    observations: cursorToWire(observations),
  }),
  ({ policies, violations, observations }) => ({
    policies: cursorFromWire(policies),
    violations: cursorFromWire(violations),
    observations: cursorFromWire(observations),
  }),
);

const acknowledgement = mappedCodec<WireCursors<'violations' | 'observations'>, Acknowledgement>(
  `${PACKAGE}.AcknowledgeRequest`,
  ({ violations, observations }) => ({
    violations: violations === undefined ? null : cursorToWire(violations),
    observations: observations === undefined ? null : cursorToWire(observations),
  }),
  ({ violations, observations }) => ({
    ...usable('violations', cursorFromWire(violations)),
    ...usable('observations', cursorFromWire(observations)),
  }),
);

function usable<K extends string>(key: K, cursor: Cursor): Partial<Record<K, Cursor>> {
  return cursor === NO_CURSOR ? {} : ({ [key]: cursor } as Record<K, Cursor>);
}

const policyListPage = mappedCodec<
  { readonly policies: Readonly<Record<string, WirePolicy>>; readonly nextPageToken: string },
  PolicyListPage
>(
  `${PACKAGE}.ListPoliciesStatusResponse`,
  ({ policies, nextPageToken }) => ({ policies: policiesToWire(policies), nextPageToken }),
  ({ policies, nextPageToken }) => ({ policies: policiesFromWire(policies), nextPageToken }),
);

const podListPage = mappedCodec<
  { readonly pods: readonly WirePod[]; readonly nextPageToken: string },
  PodListPage
>(
  `${PACKAGE}.ListPodsResponse`,
  ({ pods, nextPageToken }) => ({ pods: pods.map(podToWire), nextPageToken }),
  ({ pods, nextPageToken }) => ({ pods: pods.map(podFromWire), nextPageToken }),
);

const bindingListPage = mappedCodec<
  { readonly bindings: readonly WireBinding[]; readonly nextPageToken: string },
  BindingListPage
>(
  `${PACKAGE}.ListBindingsResponse`,
  ({ bindings, nextPageToken }) => ({ bindings: bindings.map(bindingToWire), nextPageToken }),
  ({ bindings, nextPageToken }) => ({ bindings: bindings.map(bindingFromWire), nextPageToken }),
);

/** The methods by the names that handlers and calls use. */
export const observerMethods = {
  watch: method(OBSERVER_SERVICE, 'Watch', watchRequest, reportCodec, { responseStream: true }),
  acknowledge: method(
    OBSERVER_SERVICE,
    'Acknowledge',
    acknowledgement,
    messageCodec<AcknowledgeResult>(`${PACKAGE}.AcknowledgeResponse`),
  ),
  listPoliciesStatus: method(
    OBSERVER_SERVICE,
    'ListPoliciesStatus',
    messageCodec<PolicyListRequest>(`${PACKAGE}.ListPoliciesStatusRequest`),
    policyListPage,
  ),
  listPods: method(
    OBSERVER_SERVICE,
    'ListPods',
    messageCodec<PodListRequest>(`${PACKAGE}.ListPodsRequest`),
    podListPage,
  ),
  listBindings: method(
    OBSERVER_SERVICE,
    'ListBindings',
    messageCodec<BindingListRequest>(`${PACKAGE}.ListBindingsRequest`),
    bindingListPage,
  ),
};
