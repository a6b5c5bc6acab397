import { readCommand } from '@runtime-enforcer/agent/commands/command';
import { readControllerOptions } from '@runtime-enforcer/controller/options';
import { readDebuggerOptions } from '@runtime-enforcer/debugger/options';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { describe, expect, it } from 'vitest';
import { COMBINATIONS } from './combinations.ts';
import { renderChart, type RenderedObject } from './render-chart.ts';
import { type Container, workloadsOf } from './rendered-pods.ts';

const NAMESPACE = 'runtime-enforcer';
/** What reads the arguments and the environment of each component's container; the collector is not ours. */
const READERS: Readonly<
  Record<string, (args: readonly string[], environment: Record<string, string>) => unknown>
> = {
  agent: (args, environment) => readCommand(args, environment),
  controller: (args, environment) => readControllerOptions(args, environment),
  debugger: (args, environment) => readDebuggerOptions(args, environment),
};

function environmentOf({ env = [] }: Container): Record<string, string> {
  return {
    KUBERNETES_SERVICE_HOST: '10.96.0.1',
    ...Object.fromEntries(env.map(({ name, value = 'from the pod' }) => [name, value])),
  };
}

const namesOf = (objects: readonly RenderedObject[], kind: string): string[] =>
  objects.filter(({ object }) => object.kind === kind).map(({ object }) => object.metadata.name);

function hasLabels(
  labels: Readonly<Record<string, string>>,
  selector: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

describe.each(COMBINATIONS)('with %s', (_, values) => {
  const rendering = renderChart({ values });

  it('every mount has its volume, every volume its mount, and nothing is mounted twice', async () => {
    for (const { component, pod, container } of workloadsOf(await rendering).values()) {
      const volumes = pod.volumes.map(({ name }) => name);
      const mounts = container.volumeMounts.map(({ name }) => name);
      expect(mounts.toSorted(), component).toEqual(volumes.toSorted());
      const paths = container.volumeMounts.map(({ mountPath }) => mountPath);
      expect(new Set(paths).size, component).toBe(paths.length);
    }
  });

  it('the programs understand what they are given, and every file that they are told is mounted', async () => {
    const workloads = workloadsOf(await rendering);
    expect([...workloads.keys()]).toEqual(expect.arrayContaining(Object.keys(READERS)));
    for (const { component, container } of workloads.values()) {
      const args = container.args ?? [];
      expect(args, component).not.toContain('');
      expect(() => READERS[component]?.(args, environmentOf(container)), component).not.toThrow();
      const mounts = container.volumeMounts.map(({ mountPath }) => mountPath.replace(/\/$/, ''));
      const env = Object.values(environmentOf(container));
      for (const text of [...args.map((arg) => arg.replace(/^--[\w-]+=/, '')), ...env]) {
        if (!text.startsWith('/')) continue;
        expect(
          mounts.some((mount) => text === mount || text.startsWith(`${mount}/`)),
          `${component}: ${text}`,
        ).toBe(true);
      }
    }
  });

  it('ports, accounts and selectors name what is there', async () => {
    const objects = await rendering;
    const workloads = [...workloadsOf(objects).values()];
    for (const { component, pod, container } of workloads) {
      const ports = (container.ports ?? []).map(({ name }) => name);
      for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe])
        if (probe !== undefined) expect(ports, component).toContain(probe.httpGet.port);
      if (pod.serviceAccountName === undefined) expect(pod['automountServiceAccountToken']).toBe(false);
      else expect(namesOf(objects, 'ServiceAccount')).toContain(pod.serviceAccountName);
    }
    for (const { object } of objects) {
      if (object.kind !== 'Service' && object.kind !== 'NetworkPolicy') continue;
      const spec = object['spec'] as {
        readonly selector?: Record<string, string>;
        readonly podSelector?: { readonly matchLabels: Record<string, string> };
        readonly ports?: readonly { readonly targetPort: string }[];
        readonly ingress?: readonly { readonly ports?: readonly { readonly port: string }[] }[];
      };
      const selector = spec.selector ?? spec.podSelector?.matchLabels ?? {};
      const chosen = workloads.filter(({ labels }) => hasLabels(labels, selector));
      expect(chosen, object.metadata.name).toHaveLength(1);
      const known = (chosen[0]?.container.ports ?? []).map(({ name }) => name);
      const named = [
        ...(spec.ports ?? []).map(({ targetPort }) => targetPort),
        ...(spec.ingress ?? []).flatMap(({ ports = [] }) => ports.map(({ port }) => port)),
      ];
      for (const port of named) expect(known, object.metadata.name).toContain(port);
    }
  });

  it('roles are bound to accounts of the chart, and every object says whose it is', async () => {
    const objects = await rendering;
    for (const { template, object } of objects) {
      if (object.kind?.endsWith('RoleBinding') === true) {
        const { roleRef, subjects } = object as KubeObject & {
          readonly roleRef: { readonly kind: string; readonly name: string };
          readonly subjects: readonly { readonly name: string; readonly namespace: string }[];
        };
        expect(namesOf(objects, roleRef.kind)).toContain(roleRef.name);
        for (const { name, namespace } of subjects) {
          expect(namesOf(objects, 'ServiceAccount')).toContain(name);
          expect(namespace).toBe(NAMESPACE);
        }
      }
      if (object.kind === 'CustomResourceDefinition') continue;
      const place = `${template}: ${object.kind ?? ''} ${object.metadata.name}`;
      expect(object.metadata.labels?.['app.kubernetes.io/part-of'], place).toBe('runtime-enforcer');
      expect(object.metadata.labels?.['app.kubernetes.io/instance'], place).toBe('runtime-enforcer');
      expect(object.metadata.name, place).toMatch(/^(4e873589|runtime-enforcer)/);
    }
    const keys = objects.map(({ object }) => `${object.kind ?? ''} ${object.metadata.name}`);
    expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
  });

  it('every component has a NetworkPolicy, and no container more rights than it needs', async () => {
    const objects = await rendering;
    for (const { component, labels, container } of workloadsOf(objects).values()) {
      const policies = objects.filter(
        ({ object }) =>
          object.kind === 'NetworkPolicy' &&
          hasLabels(
            labels,
            (object['spec'] as { podSelector: { matchLabels: Record<string, string> } }).podSelector
              .matchLabels,
          ),
      );
      expect(policies, component).toHaveLength(1);
      expect(container.securityContext, component).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      const { add = [] } = container.securityContext['capabilities'] as { readonly add?: readonly string[] };
      expect(add).toEqual(component === 'agent' ? ['BPF', 'PERFMON', 'SYS_RESOURCE', 'SYS_PTRACE'] : []);
    }
  });
});
