import { API_VERSION, WORKLOAD_POLICY_KIND } from '@runtime-enforcer/api/keys';
import type { FakeRequest } from '@runtime-enforcer/kube/fake-api-server';

/** For tests: the WorkloadPolicies of a fake API server. */
export interface FakePolicyApi {
  /** Answers what is about policies; false for other requests. */
  answer(request: FakeRequest): boolean;
  /** Makes or changes a policy of the namespace shop. */
  put(name: string, spec: unknown, change?: Readonly<Record<string, unknown>>): void;
  /** Writes only the status. */
  touch(name: string): void;
  remove(name: string): void;
  /** Answers every request with this status until it is set to undefined. */
  broken: number | undefined;
}

interface Stored {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

export function createFakePolicyApi(): FakePolicyApi {
  const objects = new Map<string, Stored>();
  const watchers = new Set<(type: string, object: unknown) => void>();
  let version = 1;
  let uids = 0;
  const history: { readonly version: number; readonly type: string; readonly object: unknown }[] = [];
  const tell = (type: string, object: unknown): void => {
    history.push({ version, type, object });
    for (const watcher of watchers) watcher(type, object);
  };
  const api: FakePolicyApi = {
    broken: undefined,
    answer(request) {
      if (!request.url.pathname.endsWith('/workloadpolicies')) return false;
      if (api.broken !== undefined) {
        request.reply(api.broken, { kind: 'Status', code: api.broken, message: 'broken' });
        return true;
      }
      const { searchParams } = request.url;
      if (searchParams.get('sendInitialEvents') !== null) {
        request.reply(400, { kind: 'Status', code: 400, message: 'not served' });
        return true;
      }
      if (searchParams.get('watch') === null) {
        request.reply(200, {
          kind: 'WorkloadPolicyList',
          metadata: { resourceVersion: String(version) },
          items: [...objects.values()],
        });
        return true;
      }
      const send = request.watch();
      watchers.add(send);
      const since = Number(searchParams.get('resourceVersion'));
      for (const { version: at, type, object } of history) if (at > since) send(type, object);
      request.response.on('close', () => watchers.delete(send));
      return true;
    },
    put(name, spec, change = {}) {
      const known = objects.get(name);
      const object: Stored = {
        ...{ apiVersion: API_VERSION, kind: WORKLOAD_POLICY_KIND },
        metadata: {
          ...{ name, namespace: 'shop', resourceVersion: String(++version) },
          uid: known?.metadata['uid'] ?? `uid-${++uids}`,
          generation: Number(known?.metadata['generation'] ?? 0) + 1,
          managedFields: [{ manager: 'test' }],
          ...change,
        },
        spec,
      };
      objects.set(name, object);
      tell(known === undefined ? 'ADDED' : 'MODIFIED', object);
    },
    touch(name) {
      const known = objects.get(name);
      if (known === undefined) throw new Error(`there is no policy ${name}`);
      const metadata = { ...known.metadata, resourceVersion: String(++version) };
      const object = { ...known, metadata, status: { phase: 'Ready', totalNodes: version } };
      objects.set(name, object);
      tell('MODIFIED', object);
    },
    remove(name) {
      const known = objects.get(name);
      if (known === undefined) throw new Error(`there is no policy ${name}`);
      objects.delete(name);
      tell('DELETED', { ...known, metadata: { ...known.metadata, resourceVersion: String(++version) } });
    },
  };
  return api;
}

/** The spec of a policy that lets the container main start these paths. */
export function policySpec(...allowed: readonly string[]): Readonly<Record<string, unknown>> {
  return { mode: 'protect', rulesByContainer: { main: { executables: { allowed } } } };
}
