import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { eventually } from '../runtime/eventually.ts';
import type { PolicyRule } from './service-account.ts';

const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
const CLUSTER_ROLES: Resource = { ...RBAC, plural: 'clusterroles' };
const ROLES: Resource = { ...RBAC, plural: 'roles' };
const REVIEWS: Resource = { group: 'authorization.k8s.io', version: 'v1', plural: 'subjectaccessreviews' };

/** Verbs on one kind of object, which are taken away together: `list,watch pods`, `update workloadpolicies/status`. */
export interface Right {
  readonly verbs: readonly string[];
  readonly resource: string;
}

export function rightOf(text: string): Right {
  const [verbs = '', resource = ''] = text.split(' ');
  return { verbs: verbs.split(','), resource };
}

/** Whether a rule gives any of it. */
export function gives({ resources, verbs }: PolicyRule, right: Right): boolean {
  return resources.includes(right.resource) && right.verbs.some((verb) => verbs.includes(verb));
}

/** The rights of an account, of which some can be taken away for a while. */
export interface RevocableRights {
  /** What all roles give together. */
  readonly rules: readonly PolicyRule[];
  /** Resolved when RBAC has taken it in. */
  revoke(right: Right): Promise<void>;
  /** Gives everything back. Resolved when RBAC has taken it in. */
  restore(): Promise<void>;
}

/** @param roles the ClusterRoles and Roles that the account is bound to */
export function revocableRights(
  client: ApiClient,
  account: { readonly namespace: string; readonly name: string },
  roles: readonly KubeObject[],
): RevocableRights {
  const user = `system:serviceaccount:${account.namespace}:${account.name}`;
  const pathOf = ({ kind, metadata: { name, namespace } }: KubeObject): string =>
    kind === 'Role' && namespace !== undefined
      ? objectPath({ resource: ROLES, namespace, name })
      : objectPath({ resource: CLUSTER_ROLES, name });
  const rulesOf = (role: KubeObject) => role['rules'] as readonly PolicyRule[];
  let revoked: Right | undefined;

  async function write(role: KubeObject, rules: readonly PolicyRule[]): Promise<void> {
    const path = pathOf(role);
    const current = (await client.request({ path })) as KubeObject;
    await client.request({ method: 'PUT', path, body: { ...current, rules } });
  }

  async function isAllowed(
    rule: PolicyRule,
    verb: string,
    path: string,
    namespace?: string,
  ): Promise<boolean> {
    const [resource, subresource = ''] = path.split('/');
    const [group = ''] = rule.apiGroups;
    const resourceAttributes = { group, resource, subresource, verb, ...(namespace && { namespace }) };
    const answer = await client.request({
      method: 'POST',
      path: collectionPath(REVIEWS),
      body: { spec: { user, resourceAttributes } },
    });
    return (answer as { readonly status: { readonly allowed: boolean } }).status.allowed;
  }

  async function takenIn({ verbs, resource }: Right, isGiven: boolean): Promise<void> {
    for (const role of roles) {
      for (const rule of rulesOf(role)) {
        for (const verb of verbs.filter((each) => gives(rule, { verbs: [each], resource }))) {
          const what = `RBAC has taken in the right to ${verb} ${resource}`;
          const place = role.kind === 'Role' ? role.metadata.namespace : undefined;
          await eventually(what, async () =>
            (await isAllowed(rule, verb, resource, place)) === isGiven ? true : undefined,
          );
        }
      }
    }
  }

  return {
    rules: roles.flatMap(rulesOf),
    async revoke(right) {
      revoked = right;
      for (const role of roles)
        await write(
          role,
          rulesOf(role).flatMap((rule) => without(rule, right)),
        );
      await takenIn(right, false);
    },
    async restore() {
      if (revoked === undefined) return;
      for (const role of roles) await write(role, rulesOf(role));
      await takenIn(revoked, true);
      revoked = undefined;
    },
  };
}

function without(rule: PolicyRule, right: Right): PolicyRule[] {
  if (!gives(rule, right)) return [rule];
  const others = rule.resources.filter((each) => each !== right.resource);
  const verbs = rule.verbs.filter((verb) => !right.verbs.includes(verb));
  return [
    { ...rule, resources: others },
    { ...rule, resources: [right.resource], verbs },
    // The API server takes no rule without a resource or a verb.
  ].filter((each) => each.resources.length > 0 && each.verbs.length > 0);
}
