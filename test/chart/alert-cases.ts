/** Series by their names and labels, with values in promtool's notation, a minute apart. */
export type SeriesValues = Readonly<Record<string, string>>;

/** What makes an alert fire, and what looks like it and must not. */
export interface AlertCase {
  readonly alert: string;
  /** When it is looked at. */
  readonly atMinute: number;
  readonly fires: SeriesValues;
  /** Each by itself, at the same time. */
  readonly quiet: readonly SeriesValues[];
}

const POLICY = 'k8s_namespace_name="shop", policy_name="deploy-web"';
const AGENT = 'node="n1", pod="agent-1"';
const DAEMON_SET = 'namespace="RELEASE-NAMESPACE", daemonset="AGENT-DAEMONSET"';
const AGENT_POD =
  'namespace="RELEASE-NAMESPACE", created_by_kind="DaemonSet", created_by_name="AGENT-DAEMONSET"';
const violations = (action: string) => `runtime_enforcer_violations_total{action="${action}", ${POLICY}}`;
const certificate = 'runtime_enforcer_certificate_end_timestamp_seconds{certificate="grpc", pod="agent-1"}';
const DAY_SECONDS = 86_400;

/** A counter that rises once, and one that stays where it is. */
const rises = (series: string, atMinute = 20): AlertCase['fires'] => ({
  [series]: `3+0x${atMinute - 2} 4+0x10`,
});
const stays = (series: string): SeriesValues => ({ [series]: '3+0x40' });
const counter = (alert: string, series: string, atMinute = 20): AlertCase => ({
  ...{ alert, atMinute },
  fires: rises(series, atMinute),
  quiet: [stays(series)],
});

export const ALERT_CASES: readonly AlertCase[] = [
  {
    alert: 'RuntimeEnforcerExecutableDenied',
    atMinute: 20,
    fires: rises(violations('protect')),
    quiet: [stays(violations('protect')), rises(violations('monitor'))],
  },
  {
    // The first violation of a policy begins a series.
    alert: 'RuntimeEnforcerExecutableDenied',
    atMinute: 20,
    fires: { [violations('protect')]: '_x17 1+0x10' },
    quiet: [{ [violations('protect')]: '_x10 1+0x20' }],
  },
  {
    alert: 'RuntimeEnforcerExecutableNotAllowed',
    atMinute: 20,
    fires: rises(violations('monitor')),
    quiet: [stays(violations('monitor')), rises(violations('protect'))],
  },
  {
    alert: 'RuntimeEnforcerViolationsOpen',
    atMinute: 70,
    fires: { [`runtime_enforcer_active_violations{${POLICY}}`]: '2+0x90' },
    quiet: [
      { [`runtime_enforcer_active_violations{${POLICY}}`]: '0+0x90' },
      { [`runtime_enforcer_active_violations{${POLICY}}`]: '2+0x40 0+0x50' },
    ],
  },
  {
    alert: 'RuntimeEnforcerAgentDown',
    atMinute: 10,
    fires: { [`kube_daemonset_status_number_unavailable{${DAEMON_SET}}`]: '1+0x20' },
    quiet: [
      { [`kube_daemonset_status_number_unavailable{${DAEMON_SET}}`]: '0+0x20' },
      // A rolling update.
      { [`kube_daemonset_status_number_unavailable{${DAEMON_SET}}`]: '0+0x7 1+0x1 0+0x10' },
      {
        'kube_daemonset_status_number_unavailable{namespace="other", daemonset="AGENT-DAEMONSET"}': '1+0x20',
      },
    ],
  },
  {
    alert: 'RuntimeEnforcerNodeWithoutAgent',
    atMinute: 15,
    fires: {
      'kube_node_info{node="n1"}': '1+0x20',
      'kube_node_info{node="n2"}': '1+0x20',
      [`kube_pod_info{${AGENT_POD}, node="n1"}`]: '1+0x20',
      'kube_pod_info{namespace="other", created_by_kind="DaemonSet", created_by_name="AGENT-DAEMONSET", node="n2"}':
        '1+0x20',
    },
    quiet: [{ 'kube_node_info{node="n1"}': '1+0x20', [`kube_pod_info{${AGENT_POD}, node="n1"}`]: '1+0x20' }],
  },
  {
    alert: 'RuntimeEnforcerAgentDetached',
    atMinute: 5,
    fires: { [`runtime_enforcer_attached{${AGENT}}`]: '0+0x10' },
    quiet: [{ [`runtime_enforcer_attached{${AGENT}}`]: '1+0x10' }],
  },
  {
    alert: 'RuntimeEnforcerNodeReleased',
    atMinute: 5,
    fires: { [`runtime_enforcer_role{${AGENT}, role="released"}`]: '1+0x10' },
    quiet: [
      { [`runtime_enforcer_role{${AGENT}, role="released"}`]: '0+0x10' },
      { [`runtime_enforcer_role{${AGENT}, role="standby"}`]: '1+0x10' },
    ],
  },
  {
    alert: 'RuntimeEnforcerPoliciesOverridden',
    atMinute: 5,
    fires: { [`runtime_enforcer_override_info{${AGENT}, override="monitor"}`]: '1+0x10' },
    quiet: [{ [`runtime_enforcer_override_info{${AGENT}, override="none"}`]: '1+0x10' }],
  },
  {
    alert: 'RuntimeEnforcerRuntimeDisconnected',
    atMinute: 5,
    fires: { [`runtime_enforcer_nri_connected{${AGENT}}`]: '0+0x10' },
    quiet: [
      { [`runtime_enforcer_nri_connected{${AGENT}}`]: '1+0x10' },
      // The runtime restarts.
      { [`runtime_enforcer_nri_connected{${AGENT}}`]: '1+0x3 0+0x0 1+0x10' },
    ],
  },
  {
    alert: 'RuntimeEnforcerNodeDegraded',
    atMinute: 10,
    fires: { [`runtime_enforcer_degraded{${AGENT}}`]: '1+0x20' },
    quiet: [{ [`runtime_enforcer_degraded{${AGENT}}`]: '0+0x20' }],
  },
  counter('RuntimeEnforcerExecChecksMissed', `runtime_enforcer_recursion_misses_total{${AGENT}}`),
  counter('RuntimeEnforcerContainersRefused', `runtime_enforcer_containers_refused_total{${AGENT}}`),
  ...['failed_open', 'bound_late'].map((how): AlertCase => {
    const series = (name: string) => `runtime_enforcer_containers_${name}_total{${AGENT}}`;
    const both = { [series('failed_open')]: '0+0x40', [series('bound_late')]: '0+0x40' };
    return {
      ...{ alert: 'RuntimeEnforcerContainersUnenforced', atMinute: 20 },
      fires: { ...both, ...rises(series(how)) },
      quiet: [both],
    };
  }),
  counter('RuntimeEnforcerRecordsDropped', `runtime_enforcer_drops_total{${AGENT}, place="violation_ring"}`),
  counter(
    'RuntimeEnforcerRecordsDropped',
    `runtime_enforcer_export_lost_records_total{${AGENT}, reason="queue_full"}`,
  ),
  {
    alert: 'RuntimeEnforcerPolicyNotReady',
    atMinute: 10,
    fires: { [`runtime_enforcer_policies{${AGENT}, state="failed"}`]: '1+0x20' },
    quiet: [
      { [`runtime_enforcer_policies{${AGENT}, state="failed"}`]: '0+0x20' },
      { [`runtime_enforcer_policies{${AGENT}, state="ready"}`]: '9+0x20' },
    ],
  },
  counter('RuntimeEnforcerLearningFull', `runtime_enforcer_learned_paths_refused_total{${AGENT}}`, 70),
  {
    alert: 'RuntimeEnforcerNoController',
    atMinute: 10,
    fires: { 'runtime_enforcer_controller_leader{pod="c1"}': '0+0x20' },
    quiet: [
      {
        'runtime_enforcer_controller_leader{pod="c1"}': '0+0x20',
        'runtime_enforcer_controller_leader{pod="c2"}': '1+0x20',
      },
    ],
  },
  {
    alert: 'RuntimeEnforcerAgentsSilent',
    atMinute: 10,
    fires: { 'runtime_enforcer_controller_agents{state="silent"}': '1+0x20' },
    quiet: [
      {
        'runtime_enforcer_controller_agents{state="silent"}': '0+0x20',
        'runtime_enforcer_controller_agents{state="reporting"}': '3+0x20',
      },
    ],
  },
  {
    alert: 'RuntimeEnforcerStatusBehind',
    atMinute: 15,
    fires: { runtime_enforcer_controller_oldest_unstored_entry_seconds: '400+60x20' },
    quiet: [{ runtime_enforcer_controller_oldest_unstored_entry_seconds: '30+0x20' }],
  },
  {
    alert: 'RuntimeEnforcerCertificateEnding',
    atMinute: 20,
    fires: { [certificate]: `${DAY_SECONDS}+0x30` },
    quiet: [{ [certificate]: `${5 * DAY_SECONDS}+0x30` }],
  },
  {
    // There is none.
    alert: 'RuntimeEnforcerCertificateEnding',
    atMinute: 20,
    fires: { [certificate]: '0+0x30' },
    quiet: [{ [certificate]: `0+0x10 ${5 * DAY_SECONDS}+0x30` }],
  },
];
