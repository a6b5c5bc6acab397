import { setTimeout as sleep } from 'node:timers/promises';
import { readCrd } from '@runtime-enforcer/api/testing/custom-resource';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { collectionPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';

const SERVED_BUDGET_MS = 30_000;
const SERVED_POLL_MS = 50;

/**
 * Installs the chart's CRDs and waits until their objects are served.
 *
 * @throws ApiError when the API server refuses one; Error when it serves one not within 30 s
 */
export async function installCustomResources(client: ApiClient): Promise<void> {
  for (const resource of [WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS]) {
    await client.request({
      method: 'POST',
      path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      query: { fieldValidation: 'Strict' },
      body: readCrd(resource.plural).crd,
    });
    await waitUntilServed(client, resource);
  }
}

async function waitUntilServed(client: ApiClient, resource: Resource): Promise<void> {
  const end = performance.now() + SERVED_BUDGET_MS;
  for (;;) {
    try {
      await client.request({ path: collectionPath(resource) });
      return;
    } catch (error) {
      // Not known yet, or known and its storage not opened yet.
      const isComing = error instanceof ApiError && (error.code === 404 || error.code === 429);
      if (!isComing || performance.now() > end) throw error;
    }
    await sleep(SERVED_POLL_MS);
  }
}
