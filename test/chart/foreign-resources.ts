import { copyFile, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { parse } from 'yaml';
import { createObject } from '../cluster/create-object.ts';
import { goToolchain } from '../cluster/go-toolchain.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

/** Modules that carry the definitions of resources which the chart uses and others serve. */
const MODULES = [
  {
    module: 'github.com/cert-manager/cert-manager@v1.18.2',
    files: ['crd-certificates.yaml', 'crd-issuers.yaml'].map((name) => join('deploy/crds', name)),
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.92.0',
    files: ['servicemonitors', 'podmonitors', 'prometheusrules'].map((plural) =>
      join('example/prometheus-operator-crd', `monitoring.coreos.com_${plural}.yaml`),
    ),
  },
] as const;
const RECIPE = '1';

/**
 * The CustomResourceDefinitions of cert-manager and of the Prometheus operator that the chart makes objects of.
 *
 * @returns their directory
 */
export async function foreignResources(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'foreign-resources',
    key: contentKey([RECIPE, JSON.stringify(MODULES)]),
    title: 'the resources of cert-manager and of the Prometheus operator',
    make: async (directory) => {
      const go = await goToolchain(progress);
      for (const { module, files } of MODULES) {
        const told = await runHostCommand([go, 'mod', 'download', '-json', module], { cwd: directory });
        const { Dir: source } = JSON.parse(told) as { readonly Dir: string };
        for (const file of files) await copyFile(join(source, file), join(directory, basename(file)));
      }
    },
  };
  return await cachedAsset(asset, progress);
}

/** Has an API server serve them. */
export async function installForeignResources(client: ApiClient, progress: Progress): Promise<void> {
  const directory = await foreignResources(progress);
  for (const file of await readdir(directory)) {
    const definition = parse(await readFile(join(directory, file), 'utf8')) as KubeObject;
    // Labels there are templates.
    const { name } = definition.metadata;
    await createObject(client, { ...definition, metadata: { name } });
  }
}
