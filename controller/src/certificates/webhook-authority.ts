import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';

const KINDS = ['mutating', 'validating'] as const;

/**
 * Has the API server trust an authority at the release's webhooks.
 *
 * @param authority certificates as PEM
 * @throws ApiError, ConnectionError, ContendedError
 */
export async function trustInWebhooks(
  client: ApiClient,
  release: string,
  authority: string,
  signal: AbortSignal,
): Promise<void> {
  const caBundle = Buffer.from(authority).toString('base64');
  for (const kind of KINDS) {
    await optimisticUpdate({
      client,
      reference: {
        resource: {
          group: 'admissionregistration.k8s.io',
          version: 'v1',
          plural: `${kind}webhookconfigurations`,
        },
        name: `${release}-${kind}-webhook-configuration`,
      },
      change: (current) => trusting(current, caBundle),
      signal,
    });
  }
}

/** Undefined where every webhook of the configuration trusts it already. */
function trusting(configuration: KubeObject, caBundle: string): KubeObject | undefined {
  const found = configuration['webhooks'];
  const webhooks = (Array.isArray(found) ? found : []).filter(isJsonObject);
  const isTrusting = (webhook: Record<string, unknown>): boolean =>
    isJsonObject(webhook['clientConfig']) && webhook['clientConfig']['caBundle'] === caBundle;
  if (webhooks.every(isTrusting)) return undefined;
  return {
    ...configuration,
    webhooks: webhooks.map((webhook) => ({
      ...webhook,
      clientConfig: { ...(isJsonObject(webhook['clientConfig']) && webhook['clientConfig']), caBundle },
    })),
  };
}
