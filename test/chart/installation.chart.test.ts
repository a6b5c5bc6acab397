import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { createObject, creationPath } from '../cluster/create-object.ts';
import { KUBERNETES_VERSION, testedKubernetesVersion } from '../cluster/kubernetes-binary.ts';
import { eventually } from '../runtime/eventually.ts';
import { printProgress } from '../vm/progress.ts';
import { COMBINATIONS, EVERYTHING } from './combinations.ts';
import { installForeignResources } from './foreign-resources.ts';
import { type HelmRunner, helmRunner } from './helm-runner.ts';
import { CHART, renderChart, type RenderedObject } from './render-chart.ts';
import { type Workload, workloadsOf } from './rendered-pods.ts';

const NAMESPACE = 'runtime-enforcer';
const RELEASE = 'runtime-enforcer';
const MUTATING_POLICY = '/MutatingAdmissionPolicy';

/**
 * What a cluster of each version is asked for, and which version of MutatingAdmissionPolicies it serves. The tests run
 * against one of them; the compat ring runs them against the older ones.
 */
const CLUSTERS = [
  { version: '1.31.14', serves: undefined, apiServerArguments: [] },
  {
    version: '1.34.4',
    serves: 'admissionregistration.k8s.io/v1beta1',
    apiServerArguments: [
      '--feature-gates=MutatingAdmissionPolicy=true',
      '--runtime-config=admissionregistration.k8s.io/v1beta1=true',
    ],
  },
  { version: KUBERNETES_VERSION, serves: 'admissionregistration.k8s.io/v1', apiServerArguments: [] },
] as const;
const TESTED = CLUSTERS.filter(({ version }) => version === testedKubernetesVersion());
/** The strictest level that admits the pods of each component. */
const POD_SECURITY: Readonly<Record<string, string>> = {
  agent: 'privileged',
  controller: 'restricted',
  debugger: 'restricted',
  'otel-collector': 'restricted',
};

describe.each(TESTED)('on Kubernetes $version', ({ version, serves, apiServerArguments }) => {
  const hasMutatingPolicies = serves !== undefined;
  let plane: ControlPlane;
  let helm: HelmRunner;

  beforeAll(async () => {
    plane = await startControlPlane({ version, apiServerArguments });
    await plane.serviceAccount(NAMESPACE, 'default');
    helm = await helmRunner(plane, NAMESPACE);
    await installForeignResources(plane.admin.client, printProgress);
  });
  afterAll(async () => {
    await helm.stop();
    await plane.stop();
  });

  /** With what the cluster cannot serve left out. */
  const possible = (values: object): object =>
    hasMutatingPolicies ? values : { ...values, admission: { autoBind: 'auto', requireNriPlugin: false } };

  const render = async (values: object): Promise<RenderedObject[]> =>
    await renderChart({
      values: possible(values),
      kubeVersion: version,
      apiVersions: serves === undefined ? [] : [`${serves}${MUTATING_POLICY}`],
    });

  it.each(COMBINATIONS)('every object is accepted: %s', async (_, values) => {
    const rendered = await render(values);
    const kinds = new Set(rendered.map(({ object }) => object.kind));
    expect(kinds.has('MutatingAdmissionPolicy')).toBe(hasMutatingPolicies);
    for (const { template, object } of rendered) {
      await eventually(`${template} is accepted`, async () => {
        try {
          return await createObject(plane.admin.client, object, { dryRun: true });
        } catch (error) {
          // A resource that was defined a moment ago.
          if (error instanceof ApiError && error.code === 404) return undefined;
          throw error;
        }
      });
    }
  });

  if (!hasMutatingPolicies) {
    it('what it cannot do is refused with what to do', async () => {
      for (const admission of [{ autoBind: 'required' }, { requireNriPlugin: true }]) {
        const [name = ''] = Object.keys(admission);
        await expect(renderChart({ values: { admission }, kubeVersion: version })).rejects.toThrow(
          `admission.${name}: Kubernetes v${version} does not serve MutatingAdmissionPolicies`,
        );
      }
    });
  }

  describe('a release', () => {
    const values = { ...EVERYTHING, certificates: { mode: 'generated' } };
    const secretPath = `/api/v1/namespaces/${NAMESPACE}/secrets/runtime-enforcer-agent-tls`;
    const webhooksPath =
      '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/runtime-enforcer-validating-webhook-configuration';
    const policyPath = collectionPath(WORKLOAD_POLICIES, NAMESPACE);
    const read = async (path: string) => (await plane.admin.client.request({ path })) as KubeObject;
    const patch = async (path: string, body: unknown) =>
      await plane.admin.client.request({
        ...{ method: 'PATCH', path, body },
        patchType: 'application/strategic-merge-patch+json',
      });

    it('is installed by helm', async () => {
      await helm.run(['install', RELEASE, CHART], possible(values));
      const { status } = await read(
        `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/runtime-enforcer-agent`,
      );
      expect(status).toBeDefined();
    });

    it('has pods that the Pod Security level of each component admits, and no stricter one', async () => {
      const rendered = await render(values);
      const workloads = [...workloadsOf(rendered).values()];
      expect(workloads.map(({ component }) => component).toSorted()).toEqual(
        Object.keys(POD_SECURITY).toSorted(),
      );
      for (const workload of workloads) {
        for (const level of ['privileged', 'baseline', 'restricted']) {
          await patch(`/api/v1/namespaces/${NAMESPACE}`, {
            metadata: { labels: { 'pod-security.kubernetes.io/enforce': level } },
          });
          const isAdmitted = level === 'privileged' || POD_SECURITY[workload.component] === 'restricted';
          const admission = eventually(`${workload.component} is judged by ${level}`, async () =>
            (await isPodAdmitted(workload)) === isAdmitted ? true : undefined,
          );
          await expect(admission).resolves.toBe(true);
        }
      }
    });

    /** Whether the API server takes a pod of the workload, of its account, as its controller would create it. */
    async function isPodAdmitted({ component, labels, pod }: Workload): Promise<boolean> {
      const metadata = { name: `probe-${component}`, namespace: NAMESPACE, labels };
      try {
        const probe = { apiVersion: 'v1', kind: 'Pod', metadata, spec: pod };
        await createObject(plane.admin.client, probe, { dryRun: true });
        return true;
      } catch (error) {
        if (error instanceof ApiError && error.said.includes('PodSecurity')) return false;
        throw error;
      }
    }

    it('keeps what the controller has written when it is upgraded, and rolled back', async () => {
      await patch(secretPath, { data: { 'tls.crt': 'eA==' } });
      const { webhooks } = await read(webhooksPath);
      await patch(webhooksPath, {
        webhooks: (webhooks as readonly { readonly name: string }[]).map(({ name }) => ({
          name,
          clientConfig: { caBundle: Buffer.from(AUTHORITY).toString('base64') },
        })),
      });
      const expectKept = async (): Promise<void> => {
        expect((await read(secretPath))['data']).toEqual({ 'tls.crt': 'eA==' });
        const kept = (await read(webhooksPath))['webhooks'] as readonly {
          readonly clientConfig: { readonly caBundle?: string };
        }[];
        for (const { clientConfig } of kept) expect(clientConfig.caBundle).toBeDefined();
      };
      await helm.run(['upgrade', RELEASE, CHART], possible({ ...values, agent: { logLevel: 'debug' } }));
      await expectKept();
      await helm.run(['upgrade', RELEASE, CHART], possible(values));
      await helm.run(['rollback', RELEASE, '2']);
      await expectKept();
      const { spec } = await read(`/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/runtime-enforcer-agent`);
      expect(JSON.stringify(spec)).toContain('--log-level=debug');
    });

    it('leaves the resources and their objects when it is uninstalled, and nothing else', async () => {
      await createObject(plane.admin.client, {
        apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
        kind: 'WorkloadPolicy',
        metadata: { name: 'kept', namespace: NAMESPACE },
        spec: { mode: 'monitor' },
      });
      const rendered = await render(values);
      await helm.run(['uninstall', RELEASE, '--wait=false']);
      expect(await read(`${policyPath}/kept`)).toMatchObject({ metadata: { name: 'kept' } });
      for (const { object } of rendered) {
        const path = `${await creationPath(plane.admin.client, object)}/${object.metadata.name}`;
        const isThere = await plane.admin.client.request({ path }).then(
          (found) => (found as KubeObject).metadata['deletionTimestamp'] === undefined,
          () => false,
        );
        expect(isThere, path).toBe(object.kind === 'CustomResourceDefinition');
      }
    });

    it('is installed again over them, under another name with --take-ownership', async () => {
      await helm.run(['install', RELEASE, CHART], possible(values));
      await helm.run(['uninstall', RELEASE, '--wait=false']);
      await expect(helm.run(['install', 'another', CHART], possible(values))).rejects.toThrow(/ownership/);
      await helm.run(['install', 'another', CHART, '--take-ownership'], possible(values));
      await helm.run(['uninstall', 'another', '--wait=false']);
      expect(await read(`${policyPath}/kept`)).toMatchObject({ metadata: { name: 'kept' } });
    });
  });
});

const AUTHORITY = `-----BEGIN CERTIFICATE-----
MIIBVjCB/aADAgECAgEBMAoGCCqGSM49BAMCMA0xCzAJBgNVBAMMAmNhMB4XDTI2
-----END CERTIFICATE-----
`;
