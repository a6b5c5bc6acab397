import type { PolicyRule } from '../cluster/service-account.ts';

const GROUP = 'runtimeenforcer.kubewarden.io';

/** What the agent asks of the API server, and no more. */
export const AGENT_RULES: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['workloadpolicies'], verbs: ['get', 'list', 'watch'] },
  {
    apiGroups: [GROUP],
    resources: ['workloadpolicyproposals'],
    verbs: ['get', 'list', 'watch', 'create', 'update'],
  },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
  {
    apiGroups: ['apps'],
    resources: ['deployments', 'replicasets', 'daemonsets', 'statefulsets'],
    verbs: ['get', 'list', 'watch'],
  },
  { apiGroups: ['batch'], resources: ['jobs', 'cronjobs'], verbs: ['get'] },
];
