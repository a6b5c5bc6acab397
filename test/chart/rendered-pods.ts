import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { RenderedObject } from './render-chart.ts';

interface Port {
  readonly name: string;
  readonly containerPort: number;
}

interface Probe {
  readonly httpGet: { readonly port: string; readonly path: string };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
  readonly ports?: readonly Port[];
  readonly resources: Readonly<Record<string, unknown>>;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
}

export interface PodSpec {
  readonly serviceAccountName?: string;
  readonly containers: readonly [Container];
  readonly volumes: readonly Readonly<{ name: string } & Record<string, unknown>>[];
  readonly [field: string]: unknown;
}

/** A workload of the chart. */
export interface Workload {
  readonly object: KubeObject;
  readonly component: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly pod: PodSpec;
  readonly container: Container;
}

/** The workloads that were rendered, by their component. */
export function workloadsOf(rendered: readonly RenderedObject[]): ReadonlyMap<string, Workload> {
  const workloads = new Map<string, Workload>();
  for (const { object } of rendered) {
    if (object.kind !== 'Deployment' && object.kind !== 'DaemonSet') continue;
    const { template } = object['spec'] as {
      readonly template: {
        readonly metadata: Pick<Workload, 'labels' | 'annotations'>;
        readonly spec: PodSpec;
      };
    };
    const { labels, annotations } = template.metadata;
    const component = labels['app.kubernetes.io/component'] ?? '';
    const [container] = template.spec.containers;
    workloads.set(component, { object, component, labels, annotations, pod: template.spec, container });
  }
  return workloads;
}

/** A workload that must have been rendered. @throws Error where it was not */
export function workloadOf(rendered: readonly RenderedObject[], component: string): Workload {
  const workload = workloadsOf(rendered).get(component);
  if (workload === undefined) throw new Error(`there is no workload ${component}`);
  return workload;
}
