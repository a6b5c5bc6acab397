import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ControlPlane, ServiceAccountOptions } from './control-plane.ts';

/** Writes a kubeconfig with which a program is a service account, whose token it reads from a file as in a pod. */
export async function accountKubeconfig(
  plane: ControlPlane,
  directory: string,
  account: { readonly namespace: string; readonly name: string },
  options?: ServiceAccountOptions,
): Promise<string> {
  const { namespace, name } = account;
  const { tokenFile } = await plane.serviceAccount(namespace, name, options);
  const file = join(directory, `${name}.kubeconfig`);
  const caData = Buffer.from(plane.credentials.authority.certificate).toString('base64');
  await writeFile(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'test',
          cluster: { server: options?.server ?? plane.url, 'certificate-authority-data': caData },
        },
      ],
      users: [
        { name: 'test', user: { 'auth-provider': { name: 'token-file', config: { path: tokenFile } } } },
      ],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      'current-context': 'test',
    }),
  );
  return file;
}
