import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';

const TOKEN_SECONDS = 3_600;
const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** A rule of a Role or a ClusterRole. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** What a service account may do. Roles that a controller aggregates, such as `view`, are empty without one. */
export interface Grants {
  /** In its own namespace. */
  readonly rules?: readonly PolicyRule[];
  /** In all namespaces, and with what has none. */
  readonly clusterRules?: readonly PolicyRule[];
}

/** Makes a service account, and its namespace, where they are missing, and grants it what is said and no more. */
export async function ensureServiceAccount(
  client: ApiClient,
  namespace: string,
  name: string,
  { rules = [], clusterRules = [] }: Grants,
): Promise<void> {
  await ensure(client, '/api/v1/namespaces', { metadata: { name: namespace } });
  await ensure(client, accountsPath(namespace), { metadata: { name } });
  const subjects = [{ kind: 'ServiceAccount', name, namespace }];
  const rbac = `/apis/${RBAC_GROUP}/v1`;
  if (rules.length > 0) {
    const own = `${rbac}/namespaces/${namespace}`;
    await ensure(client, `${own}/roles`, { metadata: { name }, rules });
    const roleRef = { apiGroup: RBAC_GROUP, kind: 'Role', name };
    await ensure(client, `${own}/rolebindings`, { metadata: { name }, roleRef, subjects });
  }
  if (clusterRules.length > 0) {
    const metadata = { name: `${namespace}.${name}` };
    await ensure(client, `${rbac}/clusterroles`, { metadata, rules: clusterRules });
    const roleRef = { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: metadata.name };
    await ensure(client, `${rbac}/clusterrolebindings`, { metadata, roleRef, subjects });
  }
}

/** A fresh token of a service account, valid for an hour. */
export async function requestToken(client: ApiClient, namespace: string, name: string): Promise<string> {
  const body = { spec: { expirationSeconds: TOKEN_SECONDS } };
  const answer = await client.request({
    method: 'POST',
    path: `${accountsPath(namespace)}/${name}/token`,
    body,
  });
  return (answer as { readonly status: { readonly token: string } }).status.token;
}

function accountsPath(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/serviceaccounts`;
}

async function ensure(client: ApiClient, path: string, body: unknown): Promise<void> {
  await client.request({ method: 'POST', path, body }).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
  });
}
