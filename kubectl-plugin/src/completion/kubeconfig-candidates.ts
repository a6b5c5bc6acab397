import { readKubeconfig } from '../cluster/kubeconfig.ts';
import type { Candidate } from './command-line.ts';

/** The names that stand in the kubeconfig. */
export function kubeconfigCandidates(
  what: 'contexts' | 'clusters' | 'users',
  file: string | undefined,
): readonly Candidate[] {
  const config = readKubeconfig(file, process.env);
  switch (what) {
    case 'contexts':
      return config.contexts.map(({ name, cluster }) => ({ word: name, description: cluster }));
    case 'clusters':
      return config.clusters.map(({ name, server }) => ({ word: name, description: server }));
    case 'users':
      return config.users.map(({ user }) => ({ word: user.name }));
  }
}
