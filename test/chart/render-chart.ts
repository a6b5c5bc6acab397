import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { parseAllDocuments } from 'yaml';
import { KUBERNETES_VERSION } from '../cluster/kubernetes-binary.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { helmBinary } from './helm-binary.ts';

export const CHART = join(REPOSITORY, 'charts/runtime-enforcer');
const RELEASE = 'runtime-enforcer';
const MANIFEST_SEPARATOR = /^---\n# Source: runtime-enforcer\/(\S+)\n/m;

export interface RenderOptions {
  /** Besides, and above, those of the chart. */
  readonly values?: object;
  readonly release?: string;
  readonly namespace?: string;
  /** Of Kubernetes; the one of the tests when left out. */
  readonly kubeVersion?: string;
  /** Such as `admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy`. */
  readonly apiVersions?: readonly string[];
}

/** An object of the chart, and the template that it came from, such as `templates/agent/daemonset.yaml`. */
export interface RenderedObject {
  readonly template: string;
  readonly object: KubeObject;
}

/**
 * What helm makes of the chart.
 *
 * @throws HostCommandError with helm's words when it refuses the values; Error for what is no YAML
 */
export async function renderChart(options: RenderOptions = {}): Promise<RenderedObject[]> {
  const { values = {}, release = RELEASE, namespace = RELEASE, kubeVersion = KUBERNETES_VERSION } = options;
  const directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-chart-'));
  try {
    const file = join(directory, 'values.json');
    await writeFile(file, JSON.stringify(values));
    const helm = await helmBinary(printProgress);
    const text = await runHostCommand([
      ...([helm, 'template', release, CHART] as const),
      ...['--namespace', namespace, '--kube-version', kubeVersion, '--values', file],
      ...(options.apiVersions ?? []).flatMap((version) => ['--api-versions', version]),
    ]);
    return renderedObjects(text);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function renderedObjects(text: string): RenderedObject[] {
  // What stands before the first separator is nothing; then templates and texts alternate.
  const [, ...parts] = `\n${text}`.split(MANIFEST_SEPARATOR);
  const objects: RenderedObject[] = [];
  for (let index = 0; index + 1 < parts.length; index += 2) {
    const template = parts[index] ?? '';
    for (const document of parseAllDocuments(parts[index + 1] ?? '', { uniqueKeys: true })) {
      const [error] = 'errors' in document ? document.errors : [];
      if (error !== undefined) throw new Error(`${template}: ${error.message}`, { cause: error });
      const object = document.toJS() as KubeObject | null;
      if (object !== null) objects.push({ template, object });
    }
  }
  return objects;
}
