import { dirname } from 'node:path';
import { KUBERNETES_VERSION, kubernetesBinary } from '../cluster/kubernetes-binary.ts';
import type { Progress } from '../vm/progress.ts';

/**
 * The directory that holds kubectl of the newest Kubernetes, and nothing else.
 *
 * @throws HostCommandError with the compiler's words
 */
export async function kubectlDirectory(progress: Progress): Promise<string> {
  return dirname(await kubernetesBinary('kubectl', progress, KUBERNETES_VERSION));
}
