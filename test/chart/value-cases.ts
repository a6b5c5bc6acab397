import { expect } from 'vitest';
import { CERTIFICATE_MODES } from './combinations.ts';
import {
  argsOf,
  COMPONENTS,
  environmentOf,
  GENERATED,
  named,
  objectsOf,
  placedCases,
  podOf,
  programCases,
  type ValueCase,
} from './component-values.ts';
import type { RenderedObject } from './render-chart.ts';

const collector = (values: object): object => ({ telemetry: { defaultCollector: values } });
const external = (values: object): object => ({
  telemetry: { collectorStrategy: 'external', externalCollector: { endpoint: 'c:4317', ...values } },
});
const kindsOf = (rendered: readonly RenderedObject[]): unknown => [
  ...new Set(rendered.map(({ object }) => object.kind)),
];
const hasKind = (kind: string) => (rendered: readonly RenderedObject[]) =>
  objectsOf(rendered, kind).length > 0;
const specOf =
  (kind: string, name: string) =>
  (rendered: readonly RenderedObject[]): unknown =>
    named(rendered, kind, name)?.['spec'];
const SELECTOR = '--learning-namespace-selector=';

/** Every value that is not one of a component like others. */
export const VALUE_CASES: readonly ValueCase[] = [
  [
    'nameOverride',
    { nameOverride: 'guard' },
    (all) => named(all, 'DaemonSet', 'runtime-enforcer-guard-agent')?.kind,
    'DaemonSet',
  ],
  [
    'fullnameOverride',
    { fullnameOverride: 'guard' },
    (all) => named(all, 'DaemonSet', 'guard-agent')?.kind,
    'DaemonSet',
  ],
  [
    'kubernetesClusterDomain',
    { kubernetesClusterDomain: 'corp.example' },
    environmentOf('agent', 'OTEL_EXPORTER_OTLP_ENDPOINT'),
    'https://runtime-enforcer-otel-collector.runtime-enforcer.svc.corp.example:4317',
  ],
  [
    'imagePullSecrets',
    { imagePullSecrets: ['one', { name: 'two' }] },
    (all) =>
      COMPONENTS.filter((each) => each !== 'debugger').map((each) => podOf(each, 'imagePullSecrets')(all)),
    Array.from({ length: 3 }, () => [{ name: 'one' }, { name: 'two' }]),
  ],
  ...programCases('agent'),
  ...programCases('controller'),
  ...programCases('debugger'),
  ...placedCases('otel-collector', 'telemetry.defaultCollector', collector),
  [
    'agent.grpcExporterPort',
    { agent: { grpcExporterPort: '6000' } },
    (all) => [
      argsOf('agent', 'grpc-port')(all),
      argsOf('controller', 'wp-status-reconciler-agent-grpc-port')(all),
    ],
    [['--grpc-port=6000'], ['--wp-status-reconciler-agent-grpc-port=6000']],
  ],
  [
    'agent.metricsPort',
    { agent: { metricsPort: 6000 } },
    argsOf('agent', 'metrics'),
    ['--metrics-bind-address=:6000'],
  ],
  [
    'agent.healthPort',
    { agent: { healthPort: 6000 } },
    argsOf('agent', 'health'),
    ['--health-probe-bind-address=:6000'],
  ],
  ['agent.logLevel', { agent: { logLevel: 'debug' } }, argsOf('agent', 'log-level'), ['--log-level=debug']],
  ['agent.hostPID', { agent: { hostPID: false } }, podOf('agent', 'hostPID'), false],
  [
    'agent.nriSocketPath',
    { agent: { nriSocketPath: '/opt/nri/' } },
    podOf('agent', 'volumes'),
    expect.arrayContaining([
      { name: 'nri-socket', hostPath: { path: '/opt/nri/', type: 'DirectoryOrCreate' } },
    ]),
  ],
  ['agent.nriFailopen', { agent: { nriFailopen: true } }, environmentOf('agent', 'NRI_FAILOPEN'), 'true'],
  [
    'agent.stateDir',
    { agent: { stateDir: '/data' } },
    podOf('agent', 'volumes'),
    expect.arrayContaining([{ name: 'state', hostPath: { path: '/data', type: 'DirectoryOrCreate' } }]),
  ],
  [
    'agent.maxSurge and agent.maxUnavailable',
    { agent: { maxSurge: 0, maxUnavailable: '10%' } },
    specOf('DaemonSet', 'runtime-enforcer-agent'),
    expect.objectContaining({
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: '10%' } },
    }),
  ],
  [
    'controller.logLevel',
    { controller: { logLevel: 'error' } },
    argsOf('controller', 'log-level'),
    ['--log-level=error'],
  ],
  [
    'controller.replicas',
    { controller: { replicas: 3 } },
    specOf('Deployment', 'runtime-enforcer-controller-manager'),
    expect.objectContaining({ replicas: 3 }),
  ],
  [
    'controller.wpStatusUpdateInterval',
    { controller: { wpStatusUpdateInterval: '2s' } },
    argsOf('controller', 'wp-status-reconciler-update'),
    ['--wp-status-reconciler-update-interval=2s'],
  ],
  [
    'controller.pdb.enabled and controller.pdb.minAvailable',
    { controller: { pdb: { enabled: true } } },
    specOf('PodDisruptionBudget', 'runtime-enforcer-controller'),
    expect.objectContaining({ minAvailable: 1 }),
  ],
  [
    'controller.pdb.maxUnavailable and controller.pdb.unhealthyPodEvictionPolicy',
    {
      controller: {
        pdb: { enabled: true, maxUnavailable: '50%', unhealthyPodEvictionPolicy: 'AlwaysAllow' },
      },
    },
    (all) => ({
      minAvailable: undefined,
      ...(specOf('PodDisruptionBudget', 'runtime-enforcer-controller')(all) as object),
      selector: undefined,
    }),
    { maxUnavailable: '50%', unhealthyPodEvictionPolicy: 'AlwaysAllow' },
  ],
  [
    'debugger.enabled',
    { debugger: { enabled: false } },
    (all) => JSON.stringify(all.map(({ object }) => object.metadata.name)).includes('debugger'),
    false,
  ],
  [
    'debugger.interval',
    { debugger: { enabled: true, interval: '5s' } },
    argsOf('debugger', 'interval'),
    ['--interval=5s'],
  ],
  [
    'learning, by default',
    {},
    argsOf('agent', 'learning'),
    [`${SELECTOR}{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"Exists"}]}`],
  ],
  ['learning.enabled', { learning: { enabled: false } }, argsOf('agent', 'learning'), []],
  [
    'learning.namespaceSelector: null',
    { learning: { namespaceSelector: null } },
    argsOf('agent', 'learning'),
    [],
  ],
  [
    'learning.namespaceSelector by labels',
    { learning: { namespaceSelector: { matchLabels: { learn: 'yes' }, matchExpressions: null } } },
    argsOf('agent', 'learning'),
    [`${SELECTOR}{"matchLabels":{"learn":"yes"}}`],
  ],
  ['admission.autoBind', { admission: { autoBind: 'never' } }, hasKind('MutatingAdmissionPolicy'), false],
  [
    'admission.requireNriPlugin',
    { admission: { requireNriPlugin: true } },
    (all) => named(all, 'MutatingAdmissionPolicy', 'runtime-enforcer-required-plugin')?.apiVersion,
    'admissionregistration.k8s.io/v1',
  ],
  [
    'admission.unknownPolicy',
    { admission: { unknownPolicy: 'deny' } },
    argsOf('controller', 'admission-unknown'),
    ['--admission-unknown-policy=deny'],
  ],
  [
    'certificates.mode: cert-manager-csi',
    {},
    (all) => [
      hasKind('Certificate')(all),
      hasKind('Secret')(all),
      argsOf('controller', 'wp-status-reconciler-agent-grpc-server-name')(all),
    ],
    [true, false, []],
  ],
  [
    'certificates.mode: generated',
    GENERATED,
    (all) => [
      hasKind('Certificate')(all),
      objectsOf(all, 'Secret').length,
      argsOf('controller', 'generated-certificates-release')(all),
    ],
    [false, 6, ['--generated-certificates-release=runtime-enforcer']],
  ],
  [
    'certificates.generated.authorityLifetime',
    { certificates: { mode: 'generated', generated: { authorityLifetime: '96h', lifetime: '24h' } } },
    argsOf('controller', 'generated-certificates-authority-lifetime'),
    ['--generated-certificates-authority-lifetime=96h'],
  ],
  [
    'certificates.generated.lifetime',
    { certificates: { mode: 'generated', generated: { lifetime: '24h' } } },
    argsOf('controller', 'generated-certificates-lifetime'),
    ['--generated-certificates-lifetime=24h'],
  ],
  ...Object.entries({
    agent: 'agent',
    controller: 'controller',
    webhook: 'controller',
    debugger: 'debugger',
    collector: 'otel-collector',
  }).map(([part, component]): ValueCase => [
    `certificates.secret.${part}`,
    {
      debugger: { enabled: true },
      certificates: {
        ...CERTIFICATE_MODES.secret,
        secret: { ...CERTIFICATE_MODES.secret.secret, [part]: 'mine' },
      },
    },
    (all) => JSON.stringify(podOf(component, 'volumes')(all)).includes('"secretName":"mine"'),
    true,
  ]),
  [
    'certificates.secret.webhookAuthority',
    {
      certificates: {
        ...CERTIFICATE_MODES.secret,
        secret: { ...CERTIFICATE_MODES.secret.secret, webhookAuthority: 'PEM' },
      },
    },
    (all) =>
      JSON.stringify(objectsOf(all, 'ValidatingWebhookConfiguration')).includes(
        `"caBundle":"${Buffer.from('PEM').toString('base64')}"`,
      ),
    true,
  ],
  [
    'telemetry.collectorStrategy: none',
    { telemetry: { collectorStrategy: 'none' } },
    (all) => [
      environmentOf('agent', 'OTEL_EXPORTER_OTLP_ENDPOINT')(all),
      named(all, 'Deployment', 'runtime-enforcer-otel-collector'),
    ],
    [undefined, undefined],
  ],
  [
    'telemetry.externalCollector.endpoint',
    external({ endpoint: 'o:1' }),
    environmentOf('controller', 'OTEL_EXPORTER_OTLP_ENDPOINT'),
    'o:1',
  ],
  [
    'telemetry.externalCollector.protocol',
    external({ protocol: 'http/protobuf' }),
    environmentOf('agent', 'OTEL_EXPORTER_OTLP_PROTOCOL'),
    'http/protobuf',
  ],
  [
    'telemetry.externalCollector.otelCollectorCertificateSecret',
    external({ otelCollectorCertificateSecret: 's' }),
    environmentOf('agent', 'OTEL_EXPORTER_OTLP_CERTIFICATE'),
    '/tmp/otel-collector-certs/ca.crt',
  ],
  [
    'telemetry.externalCollector.otelCollectorClientCertificateSecret',
    external({ otelCollectorClientCertificateSecret: 's' }),
    environmentOf('controller', 'OTEL_EXPORTER_OTLP_CLIENT_KEY'),
    '/tmp/otel-collector-client-certs/tls.key',
  ],
  [
    'monitoring, by default',
    {},
    (all) => (kindsOf(all) as string[]).filter((kind) => /Monitor|Rule$/.test(kind)),
    [],
  ],
  [
    'monitoring.serviceMonitor',
    { monitoring: { serviceMonitor: { enabled: true, interval: '7s', labels: { release: 'prom' } } } },
    (all) =>
      objectsOf(all, 'ServiceMonitor').map(({ metadata, spec }) => [
        metadata.labels?.['release'],
        JSON.stringify(spec).includes('"interval":"7s"'),
      ]),
    [
      ['prom', true],
      ['prom', true],
    ],
  ],
  [
    'monitoring.podMonitor',
    { monitoring: { podMonitor: { enabled: true, interval: '7s', labels: { release: 'prom' } } } },
    (all) =>
      objectsOf(all, 'PodMonitor').map(({ metadata, spec }) => [
        metadata.labels?.['release'],
        JSON.stringify(spec).includes('"interval":"7s"'),
      ]),
    [['prom', true]],
  ],
  [
    'monitoring.prometheusRule.labels',
    { monitoring: { prometheusRule: { enabled: true, labels: { release: 'prom' } } } },
    (all) => objectsOf(all, 'PrometheusRule').map(({ metadata }) => metadata.labels?.['release']),
    ['prom'],
  ],
  ['networkPolicy.enabled', { networkPolicy: { enabled: false } }, hasKind('NetworkPolicy'), false],
  [
    'networkPolicy.metricsFrom',
    { networkPolicy: { metricsFrom: [{ namespaceSelector: { matchLabels: { name: 'prom' } } }] } },
    (all) =>
      objectsOf(all, 'NetworkPolicy').filter((each) => JSON.stringify(each).includes('"name":"prom"')).length,
    3,
  ],
  [
    'rbac.userRoles',
    { rbac: { userRoles: false } },
    (all) =>
      objectsOf(all, 'ClusterRole').filter(({ metadata }) => /viewer|operator|writer/.test(metadata.name)),
    [],
  ],
  [
    'priorityClass.enabled',
    { priorityClass: { enabled: false } },
    (all) => [hasKind('PriorityClass')(all), podOf('agent', 'priorityClassName')(all)],
    [false, undefined],
  ],
  [
    'priorityClass',
    { priorityClass: { name: 'p', value: 7, globalDefault: true, description: 'd' } },
    (all) => [named(all, 'PriorityClass', 'p'), podOf('agent', 'priorityClassName')(all)],
    [expect.objectContaining({ value: 7, globalDefault: true, description: 'd' }), 'p'],
  ],
];
