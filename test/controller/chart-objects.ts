import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isAlreadyExists } from '@runtime-enforcer/kube/api-error';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { renderChart } from '../chart/render-chart.ts';
import { createObject } from '../cluster/create-object.ts';

const TEMPLATES = 'templates';

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
    await createObject(client, object).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
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
