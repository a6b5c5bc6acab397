import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { expect } from 'vitest';
import { CERTIFICATE_MODES } from './combinations.ts';
import type { RenderedObject } from './render-chart.ts';
import { workloadOf } from './rendered-pods.ts';

/** What a value changes, how that shows, and what then shows. */
export type ValueCase = readonly [
  name: string,
  values: object,
  shows: (rendered: readonly RenderedObject[]) => unknown,
  expected: unknown,
];

export const GENERATED = { certificates: CERTIFICATE_MODES.generated };
export const COMPONENTS = ['agent', 'controller', 'debugger', 'otel-collector'] as const;

export const objectsOf = (rendered: readonly RenderedObject[], kind: string): KubeObject[] =>
  rendered.filter(({ object }) => object.kind === kind).map(({ object }) => object);
export const named = (
  rendered: readonly RenderedObject[],
  kind: string,
  name: string,
): KubeObject | undefined => objectsOf(rendered, kind).find(({ metadata }) => metadata.name === name);
export const argsOf =
  (component: string, flag: string) =>
  (rendered: readonly RenderedObject[]): readonly string[] =>
    (workloadOf(rendered, component).container.args ?? []).filter((arg) => arg.startsWith(`--${flag}`));
export const environmentOf =
  (component: string, variable: string) =>
  (rendered: readonly RenderedObject[]): string | undefined =>
    workloadOf(rendered, component).container.env?.find(({ name }) => name === variable)?.value;
export const podOf = (component: string, field: string) => (rendered: readonly RenderedObject[]) =>
  workloadOf(rendered, component).pod[field];

/** What every component takes, under the key of its values. */
export function placedCases(component: string, key: string, wrap: (values: object) => object): ValueCase[] {
  const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
  const tolerations = [{ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }];
  return [
    [
      `${key}.podLabels`,
      wrap({ podLabels: { team: 'x', 'app.kubernetes.io/component': 'other' } }),
      (rendered) => [
        workloadOf(rendered, component).labels['team'],
        workloadOf(rendered, component).component,
      ],
      ['x', component],
    ],
    [
      `${key}.podAnnotations`,
      wrap({ podAnnotations: { note: 'x' } }),
      (rendered) => workloadOf(rendered, component).annotations['note'],
      'x',
    ],
    [
      `${key}.nodeSelector`,
      wrap({ nodeSelector: { disk: 'ssd' } }),
      podOf(component, 'nodeSelector'),
      { disk: 'ssd' },
    ],
    [`${key}.affinity`, wrap({ affinity }), podOf(component, 'affinity'), affinity],
    [`${key}.tolerations`, wrap({ tolerations }), podOf(component, 'tolerations'), tolerations],
    [
      `${key}.resources`,
      wrap({ resources: { limits: { cpu: '1', memory: '1Gi' } } }),
      (rendered) => workloadOf(rendered, component).container.resources['limits'],
      { cpu: '1', memory: '1Gi' },
    ],
    [
      `${key}.image`,
      wrap({ image: { repository: 'example.org/x', tag: '9', pullPolicy: 'Always' } }),
      (rendered) => workloadOf(rendered, component).container,
      expect.objectContaining({ image: 'example.org/x:9', imagePullPolicy: 'Always' }),
    ],
  ];
}

/** What every program of ours takes besides. */
export function programCases(component: 'agent' | 'controller' | 'debugger'): ValueCase[] {
  const wrap = (values: object): object => ({
    ...GENERATED,
    debugger: { enabled: true },
    [component]: values,
  });
  const within = (values: object): object =>
    component === 'debugger' ? { ...GENERATED, debugger: { enabled: true, ...values } } : wrap(values);
  const level = component === 'debugger' ? '--grpc-port=7' : '--log-level=warn';
  return [
    ...placedCases(component, component, within),
    [
      `${component}.args`,
      within({ args: [level, ''] }),
      (rendered) => [
        argsOf(component, level.slice(2, 11))(rendered),
        argsOf(component, '')(rendered).includes(''),
      ],
      [[level], false],
    ],
    [
      `${component}.env`,
      within({ env: [{ name: 'HTTPS_PROXY', value: 'x' }] }),
      environmentOf(component, 'HTTPS_PROXY'),
      'x',
    ],
    [
      `${component}.serviceAccount.annotations`,
      within({ serviceAccount: { annotations: { role: 'x' } } }),
      (rendered) => named(rendered, 'ServiceAccount', `runtime-enforcer-${component}`)?.metadata.annotations,
      { role: 'x' },
    ],
    [
      `${component}.podSecurityContext`,
      within({ podSecurityContext: { fsGroup: 7 } }),
      podOf(component, 'securityContext'),
      expect.objectContaining({ fsGroup: 7 }),
    ],
    [
      `${component}.containerSecurityContext`,
      within({ containerSecurityContext: { runAsUser: 7 } }),
      (rendered) => workloadOf(rendered, component).container.securityContext,
      expect.objectContaining({ runAsUser: 7 }),
    ],
  ];
}
