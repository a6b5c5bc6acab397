import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { renderChart } from '../chart/render-chart.ts';

const TEMPLATES = 'templates';

/** Where objects of a kind, by `kind`, are created. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  ServiceAccount: '/api/v1/namespaces/NS/serviceaccounts',
  Secret: '/api/v1/namespaces/NS/secrets',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: '/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles',
  RoleBinding: '/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings',
  ...Object.fromEntries(
    [
      'ValidatingAdmissionPolicy',
      'ValidatingAdmissionPolicyBinding',
      'MutatingAdmissionPolicy',
      'MutatingAdmissionPolicyBinding',
      'ValidatingWebhookConfiguration',
      'MutatingWebhookConfiguration',
    ].map((kind) => [
      kind,
      `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, 'ie')}s`,
    ]),
  ),
};

/** The objects of a folder, or of one file, of the chart's templates, with everything that is optional there. */
export async function chartObjects(path: string): Promise<KubeObject[]> {
  const rendered = await renderChart({ values: { admission: { requireNriPlugin: true } } });
  return rendered
    .filter(
      ({ template }) => template === `${TEMPLATES}/${path}` || template.startsWith(`${TEMPLATES}/${path}/`),
    )
    .map(({ object }) => object);
}

/** Creates objects as strictly as the API server can check them. */
export async function createAll(client: ApiClient, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const collection = COLLECTIONS[object.kind ?? ''];
    if (collection === undefined) throw new Error(`no place is known for the kind ${object.kind ?? ''}`);
    await client
      .request({
        method: 'POST',
        path: collection.replace('NS', object.metadata.namespace ?? ''),
        query: { fieldValidation: 'Strict' },
        body: { apiVersion: 'admissionregistration.k8s.io/v1', ...object },
      })
      .catch((error: unknown) => {
        if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
      });
  }
}

/** The same webhooks, asked at an address of this machine. */
export function withWebhooksAt(configuration: KubeObject, port: number, authority: string): KubeObject {
  const webhooks = configuration['webhooks'] as readonly {
    readonly clientConfig: { readonly service: { readonly path: string } };
  }[];
  return {
    ...configuration,
    webhooks: webhooks.map((webhook) => ({
      ...webhook,
      clientConfig: {
        url: `https://127.0.0.1:${port}${webhook.clientConfig.service.path}`,
        caBundle: Buffer.from(authority).toString('base64'),
      },
    })),
  };
}
