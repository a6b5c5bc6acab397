import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { type Cluster, type Context, KubeConfig, type User } from '@kubernetes/client-node';
import { quote } from '@runtime-enforcer/api/field-error';
import { tokenFileUser } from '@runtime-enforcer/kube/token-file';
import { parse } from 'yaml';
import { fieldOf, listAt, textAt } from '../output/json-field.ts';
import { PluginError } from '../plugin-error.ts';

/** Whom the requests act as. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

/** What all kubeconfig files together say. */
export interface Kubeconfig {
  readonly clusters: readonly Cluster[];
  readonly contexts: readonly Context[];
  readonly users: readonly KubeconfigUser[];
  readonly currentContext: string | undefined;
  /** The files that were read. */
  readonly files: readonly string[];
}

export interface KubeconfigUser {
  readonly user: User;
  readonly impersonation?: Impersonation;
}

type Environment = Readonly<Record<string, string | undefined>>;

const EMPTY: Kubeconfig = { clusters: [], contexts: [], users: [], currentContext: undefined, files: [] };

/**
 * Reads the kubeconfig as kubectl does: the file of `--kubeconfig`, else those of KUBECONFIG, else `~/.kube/config`.
 * Of two entries with one name the first counts. Files that do not exist are passed over, except a `--kubeconfig`.
 *
 * @throws PluginError with the file's name when one cannot be read
 */
export function readKubeconfig(flag: string | undefined, environment: Environment): Kubeconfig {
  const fromEnvironment = environment['KUBECONFIG']?.split(delimiter).filter((file) => file !== '') ?? [];
  const home = environment['HOME'] ?? homedir();
  const usual = fromEnvironment.length > 0 ? fromEnvironment : [join(home, '.kube', 'config')];
  const files = flag === undefined ? usual : [flag];
  return files
    .map((file) => readFile(file, flag === undefined ? 'optional' : 'required'))
    .reduce(merge, EMPTY);
}

function readFile(file: string, need: 'optional' | 'required'): Kubeconfig {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    const { code = 'unreadable' } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' && need === 'optional') return EMPTY;
    throw new PluginError(`kubeconfig ${quote(file)} cannot be read (${code})`, undefined, { cause });
  }
  try {
    return readText(text, file);
  } catch (cause) {
    const [reason = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n');
    const remedy = 'compare it with what `kubectl config view` prints';
    throw new PluginError(`kubeconfig ${quote(file)} is not one: ${quote(reason)}`, remedy, { cause });
  }
}

function readText(text: string, file: string): Kubeconfig {
  const raw: unknown = parse(text);
  if (raw === null || raw === undefined) return { ...EMPTY, files: [file] };
  const config = new KubeConfig();
  config.loadFromString(text);
  config.makePathsAbsolute(dirname(resolve(file)));
  const rawUsers = new Map(
    listAt(raw, 'users').map((entry) => [textAt(entry, 'name'), fieldOf(entry, 'user')]),
  );
  const users = config.users.map((user): KubeconfigUser => {
    const fields = rawUsers.get(user.name);
    const impersonation = impersonationOf(fields);
    return {
      user: completedUser(user, fields, dirname(resolve(file))),
      ...(impersonation && { impersonation }),
    };
  });
  const currentContext = textAt(raw, 'current-context');
  return {
    clusters: config.clusters,
    contexts: config.contexts,
    users,
    currentContext: currentContext === '' ? undefined : currentContext,
    files: [file],
  };
}

/** What the client library does not read: token files by their real name, and what client-go tells a plugin. */
function completedUser(user: User, fields: unknown, directory: string): User {
  const tokenFile = textAt(fields, 'tokenFile');
  if (tokenFile !== '' && textAt(fields, 'token') === '') {
    const path = isAbsolute(tokenFile) ? tokenFile : join(directory, tokenFile);
    return tokenFileUser(user.name, path);
  }
  const command = textAt(fields, 'exec', 'command');
  if (command === '') return user;
  const isRelative = command.includes('/') && !isAbsolute(command);
  const exec = fieldOf(fields, 'exec') as Record<string, unknown>;
  return { ...user, exec: { ...exec, command: isRelative ? join(directory, command) : command } };
}

function impersonationOf(fields: unknown): Impersonation | undefined {
  const user = textAt(fields, 'as');
  if (user === '') return undefined;
  const uid = textAt(fields, 'as-uid');
  const extra = fieldOf(fields, 'as-user-extra');
  return {
    user,
    groups: texts(listAt(fields, 'as-groups')),
    extra: new Map(
      Object.entries(typeof extra === 'object' && extra !== null ? extra : {}).map(([key, values]) => [
        key,
        texts(Array.isArray(values) ? values : []),
      ]),
    ),
    ...(uid !== '' && { uid }),
  };
}

function texts(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === 'string');
}

function merge(first: Kubeconfig, second: Kubeconfig): Kubeconfig {
  const firstOf = <T>(one: readonly T[], other: readonly T[], name: (entry: T) => string): T[] => {
    const known = new Set(one.map(name));
    return [...one, ...other.filter((entry) => !known.has(name(entry)))];
  };
  return {
    clusters: firstOf(first.clusters, second.clusters, ({ name }) => name),
    contexts: firstOf(first.contexts, second.contexts, ({ name }) => name),
    users: firstOf(first.users, second.users, ({ user }) => user.name),
    currentContext: first.currentContext ?? second.currentContext,
    files: [...first.files, ...second.files],
  };
}
