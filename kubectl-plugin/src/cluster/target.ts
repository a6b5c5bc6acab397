import { resolve } from 'node:path';
import type { Cluster, Context, User } from '@kubernetes/client-node';
import { quote } from '@runtime-enforcer/api/field-error';
import { DEFAULT_NAMESPACE } from '@runtime-enforcer/api/keys';
import { isDnsLabel } from '@runtime-enforcer/api/kubernetes-name';
import { PluginError, UsageError } from '../plugin-error.ts';
import type { KubeFlags } from './kube-flags.ts';
import type { Impersonation, Kubeconfig } from './kubeconfig.ts';

/** Which server to ask, as whom, and in which namespace. */
export interface Target {
  readonly cluster: Cluster;
  readonly user: User;
  readonly impersonation?: Impersonation;
  readonly namespace: string;
  /** Undefined where flags alone say everything. */
  readonly contextName: string | undefined;
}

const FLAG_ENTRY = 'flags';

/**
 * What the kubeconfig and kubectl's flags together mean; a flag wins over the file.
 *
 * @param inNamespace namespace of the pod that the plugin runs in, when there is no kubeconfig
 * @throws PluginError when the file has not what is named, or nothing names a server; UsageError for a wrong flag
 */
export function targetOf(config: Kubeconfig, flags: KubeFlags): Target {
  const contextName = flags.context ?? config.currentContext;
  const context = contextName === undefined ? undefined : contextOf(config, contextName, flags.context);
  const cluster = clusterOf(config, flags, context);
  const { user, impersonation } = userOf(config, flags, context);
  const namespace = flags.namespace ?? context?.namespace ?? DEFAULT_NAMESPACE;
  if (!isDnsLabel(namespace)) {
    throw new UsageError(
      `namespace ${quote(namespace)} is not a name; expected lower-case letters, digits and "-"`,
    );
  }
  return { cluster, user, namespace, contextName, ...(impersonation && { impersonation }) };
}

function contextOf(config: Kubeconfig, name: string, flag: string | undefined): Context | undefined {
  const context = config.contexts.find((each) => each.name === name);
  if (context === undefined && flag !== undefined) {
    throw new PluginError(
      `context ${quote(name)} does not exist in the kubeconfig`,
      'see `kubectl config get-contexts`',
    );
  }
  return context;
}

function clusterOf(config: Kubeconfig, flags: KubeFlags, context: Context | undefined): Cluster {
  const name = flags.cluster ?? context?.cluster;
  const known = config.clusters.find((each) => each.name === name);
  if (known === undefined && flags.cluster !== undefined) {
    throw new PluginError(
      `cluster ${quote(flags.cluster)} does not exist in the kubeconfig`,
      'see `kubectl config get-clusters`',
    );
  }
  const server = flags.server ?? known?.server;
  if (server === undefined || server === '') throw noServer(config);
  const protocol = URL.canParse(server) ? new URL(server).protocol : '';
  if (protocol !== 'https:' && protocol !== 'http:') {
    throw new PluginError(
      `${quote(server)} is not the address of a server; expected one such as https://host:6443`,
    );
  }
  const { certificateAuthority, insecureSkipTlsVerify, tlsServerName, proxyUrl } = flags;
  return {
    name: known?.name ?? FLAG_ENTRY,
    ...known,
    server,
    // Where there is no TLS, as behind kubectl proxy, the client library wants to hear that none is checked.
    skipTLSVerify: protocol === 'http:' || (insecureSkipTlsVerify ?? known?.skipTLSVerify ?? false),
    ...(certificateAuthority !== undefined &&
      withoutInline('caData', { caFile: resolve(certificateAuthority) })),
    ...(tlsServerName !== undefined && { tlsServerName }),
    ...(proxyUrl !== undefined && { proxyUrl }),
  };
}

function userOf(
  config: Kubeconfig,
  flags: KubeFlags,
  context: Context | undefined,
): { readonly user: User; readonly impersonation?: Impersonation } {
  const name = flags.user ?? context?.user;
  const known = config.users.find(({ user }) => user.name === name);
  if (known === undefined && flags.user !== undefined) {
    throw new PluginError(
      `user ${quote(flags.user)} does not exist in the kubeconfig`,
      'see `kubectl config get-users`',
    );
  }
  const { token, username, password, clientCertificate, clientKey } = flags;
  const user: User = {
    // A token on the command line stands for whatever else the user proves himself with.
    ...(token === undefined ? known?.user : undefined),
    name: known?.user.name ?? FLAG_ENTRY,
    ...(token !== undefined && { token }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(clientCertificate !== undefined &&
      withoutInline('certData', { certFile: resolve(clientCertificate) })),
    ...(clientKey !== undefined && withoutInline('keyData', { keyFile: resolve(clientKey) })),
  };
  const impersonation = impersonationOf(flags) ?? known?.impersonation;
  return { user, ...(impersonation && { impersonation }) };
}

/** A file on the command line wins over what the kubeconfig holds itself. */
function withoutInline<Name extends string, Fields extends object>(inline: Name, fields: Fields) {
  return { ...fields, [inline]: '' } as Fields & Record<Name, string>;
}

function impersonationOf({
  as: user,
  asUid,
  asGroup = [],
  asUserExtra = [],
}: KubeFlags): Impersonation | undefined {
  if (user === undefined) {
    if (asUid === undefined && asGroup.length + asUserExtra.length === 0) return undefined;
    throw new UsageError(
      '--as-uid, --as-group and --as-user-extra need --as',
      'add --as and the name of a user',
    );
  }
  const extra = new Map<string, string[]>();
  for (const pair of asUserExtra) {
    const equals = pair.indexOf('=');
    if (equals < 1) throw new UsageError(`--as-user-extra: ${quote(pair)} is not of the form key=value`);
    const key = pair.slice(0, equals);
    extra.set(key, [...(extra.get(key) ?? []), pair.slice(equals + 1)]);
  }
  return { user, groups: asGroup, extra, ...(asUid !== undefined && { uid: asUid }) };
}

function noServer({ files, currentContext }: Kubeconfig): PluginError {
  if (files.length === 0) {
    return new PluginError(
      'no cluster is configured: there is no kubeconfig file',
      'set KUBECONFIG, or give --kubeconfig FILE or --server URL',
    );
  }
  const shown = files.map((file) => quote(file)).join(', ');
  return currentContext === undefined
    ? new PluginError(
        `no cluster is chosen: ${shown} has no current context`,
        'run `kubectl config use-context NAME`',
      )
    : new PluginError(
        `the current context ${quote(currentContext)} of ${shown} names no cluster`,
        'run `kubectl config use-context NAME` with one that does',
      );
}
