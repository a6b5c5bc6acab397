import type { ApiClient, ApiRequest } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { describe, expect, it } from 'vitest';
import { changeTemplate } from './template-change.ts';
import { parseWorkload } from './workloads.ts';

const { resource } = parseWorkload('deployment/web');

/** A workload on a server that takes a patch of its newest version only; others write before each of the patches. */
function serverWith(writes: readonly ('status' | 'spec' | 'anew')[]): {
  readonly client: ApiClient;
  readonly shown: KubeObject;
  readonly patches: unknown[];
} {
  const waiting = [...writes];
  const patches: unknown[] = [];
  let version = 1;
  let generation = 1;
  let uid = 'first';
  const current = (): KubeObject => ({
    metadata: { name: 'web', namespace: 'shop', uid, generation, resourceVersion: String(version) },
  });
  const request = ({ method = 'GET', body }: ApiRequest): Promise<unknown> => {
    if (method === 'GET') return Promise.resolve(current());
    const write = waiting.shift();
    if (write !== undefined) version++;
    if (write === 'spec') generation++;
    if (write === 'anew') uid = 'second';
    const { metadata } = body as KubeObject;
    if (metadata.resourceVersion !== String(version))
      return Promise.reject(new ApiError('PATCH', 409, { reason: 'Conflict' }));
    patches.push(body);
    return Promise.resolve(current());
  };
  const stream = (): Promise<never> => Promise.reject(new Error('nothing is watched'));
  return { client: { request, stream }, shown: current(), patches };
}

describe('changeTemplate', () => {
  it('sets the label although the status is written all the while', async () => {
    const { client, shown, patches } = serverWith(['status', 'status', 'status']);
    await changeTemplate(client, resource, shown, 'web');
    expect(patches).toEqual([
      expect.objectContaining({
        spec: {
          template: { metadata: { labels: { 'runtimeenforcer.kubewarden.io/policy': 'web' } } },
        },
      }),
    ]);
  });

  it.each(['spec', 'anew'] as const)(
    'changes nothing that was changed since it was shown (%s)',
    async (write) => {
      const { client, shown, patches } = serverWith(['status', write]);
      await expect(changeTemplate(client, resource, shown, undefined)).rejects.toThrow(
        'Deployment "web" in namespace "shop" was modified concurrently',
      );
      expect(patches).toEqual([]);
    },
  );

  it('gives up on a workload that is written without end', async () => {
    const { client, shown } = serverWith(Array.from({ length: 100 }, () => 'status' as const));
    await expect(changeTemplate(client, resource, shown, 'web')).rejects.toThrow('modified concurrently');
  });
});
