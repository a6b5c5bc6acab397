import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import type { ApiClient, ApiRequest } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';

/** `/api/v1/namespaces/NS/plural/NAME/sub` or with `/apis/GROUP/VERSION`; the namespace is left out for all of them. */
const PATH =
  /^(?<root>\/api\/v1|\/apis\/[^/]+\/[^/]+)(\/namespaces\/(?<namespace>[^/]+)(?=\/))?\/(?<plural>[^/]+)(\/(?<name>[^/]+))?(\/(?<subresource>[^/]+))?$/;

/** Objects as an API server keeps them, in this process: optimistic locking, uids, watches; no schema, no RBAC. */
export interface MemoryApi {
  readonly client: ApiClient;
  /** Each request that was let in: `POST /apis/…`. */
  readonly requests: readonly string[];
  put(path: string, object: Readonly<Record<string, unknown>>): KubeObject;
  remove(path: string): void;
  get(path: string): KubeObject | undefined;
  list(collection: string): readonly KubeObject[];
  /** Called before, and after, each request takes effect; what it throws is what the client gets. */
  intercept: (moment: 'before' | 'after', request: ApiRequest) => void | Promise<void>;
}

/** See {@link MemoryApi}. */
export function memoryApi(): MemoryApi {
  const objects = new Map<string, KubeObject>();
  const watchers = new Set<{ readonly matches: (key: string) => boolean; readonly stream: PassThrough }>();
  const requests: string[] = [];
  let version = 1;

  function tell(type: string, key: string, object: KubeObject): void {
    for (const { matches, stream } of watchers) {
      if (matches(key)) stream.write(`${JSON.stringify({ type, object })}\n`);
    }
  }

  function store(key: string, object: Readonly<Record<string, unknown>>, parsed: ParsedPath): KubeObject {
    const known = objects.get(key);
    const metadata = isJsonObject(object['metadata']) ? object['metadata'] : {};
    const stored: KubeObject = {
      ...object,
      metadata: {
        ...metadata,
        name: parsed.name ?? String(metadata['name']),
        ...(parsed.namespace !== undefined && { namespace: parsed.namespace }),
        uid: known?.metadata.uid ?? randomUUID(),
        resourceVersion: String(++version),
      },
    };
    objects.set(key, stored);
    tell(known === undefined ? 'ADDED' : 'MODIFIED', key, stored);
    return stored;
  }

  function remove(key: string): void {
    const known = objects.get(key);
    objects.delete(key);
    if (known) {
      const metadata = { ...known.metadata, resourceVersion: String(++version) };
      tell('DELETED', key, { ...known, metadata });
    }
  }

  function within({ root, namespace, plural }: ParsedPath): (key: string) => boolean {
    return (key) => {
      const other = parsePath(key);
      return (
        other.root === root &&
        other.plural === plural &&
        (namespace === undefined || other.namespace === namespace)
      );
    };
  }

  function answer(request: ApiRequest): unknown {
    const { method = 'GET', path, body, query = {} } = request;
    const parsed = parsePath(path);
    const { name, subresource } = parsed;
    const given = isJsonObject(body) ? body : {};
    if (name === undefined) {
      if (method === 'GET') return listOf(within(parsed), query['labelSelector']);
      const metadata = isJsonObject(given['metadata']) ? given['metadata'] : {};
      const key = `${path}/${String(metadata['name'])}`;
      if (objects.has(key)) throw refusal(request, 409, 'AlreadyExists');
      return store(key, given, parsed);
    }
    const key = subresource === undefined ? path : path.slice(0, -subresource.length - 1);
    const known = objects.get(key);
    if (known === undefined) throw refusal(request, 404, 'NotFound');
    if (method === 'GET') return known;
    const metadata = isJsonObject(given['metadata']) ? given['metadata'] : {};
    if (method === 'DELETE') {
      const preconditions = isJsonObject(given['preconditions']) ? given['preconditions'] : {};
      const { uid = known.metadata.uid } = preconditions;
      if (uid !== known.metadata.uid) throw refusal(request, 409, 'Conflict');
      remove(key);
      return { kind: 'Status', status: 'Success' };
    }
    if (method === 'PATCH') {
      const annotations = Object.entries({ ...known.metadata.annotations, ...annotationsOf(metadata) });
      return store(
        key,
        {
          ...known,
          ...given,
          metadata: {
            ...known.metadata,
            annotations: Object.fromEntries(annotations.filter(([, value]) => value !== null)),
          },
        },
        parsed,
      );
    }
    if (metadata['resourceVersion'] !== known.metadata.resourceVersion) {
      throw refusal(request, 409, 'Conflict');
    }
    return store(
      key,
      subresource === 'status'
        ? { ...known, status: given['status'] }
        : { ...given, status: known['status'] },
      parsed,
    );
  }

  function listOf(matches: (key: string) => boolean, selector: unknown): unknown {
    const [label, value] = typeof selector === 'string' ? selector.split('=') : [];
    const items = [...objects]
      .filter(
        ([key, { metadata }]) =>
          matches(key) && (label === undefined || metadata.labels?.[label] === (value ?? '')),
      )
      .map(([, object]) => object);
    return { metadata: { resourceVersion: String(version) }, items };
  }

  const api: MemoryApi = {
    requests,
    client: {
      async request(request) {
        await api.intercept('before', request);
        request.signal?.throwIfAborted();
        request.beforeSend?.();
        requests.push(`${request.method ?? 'GET'} ${request.path}`);
        const body = structuredClone(request.body);
        const result = structuredClone(answer({ ...request, body }));
        await api.intercept('after', request);
        return result;
      },
      async stream(request) {
        await api.intercept('before', request);
        request.signal?.throwIfAborted();
        // Without the list as a watch: the reflector then lists.
        if (request.query?.['sendInitialEvents'] === true) throw refusal(request, 400, 'BadRequest');
        const stream = new PassThrough();
        const watcher = { matches: within(parsePath(request.path)), stream };
        watchers.add(watcher);
        request.signal?.addEventListener('abort', () => {
          watchers.delete(watcher);
          stream.destroy(new Error('aborted'));
        });
        return stream;
      },
    },
    put: (path, object) => store(path, object, parsePath(path)),
    remove,
    get: (path) => objects.get(path),
    list: (collection) =>
      [...objects].filter(([key]) => within(parsePath(collection))(key)).map(([, object]) => object),
    intercept: () => undefined,
  };
  return api;
}

function annotationsOf(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return isJsonObject(metadata['annotations']) ? metadata['annotations'] : {};
}

interface ParsedPath {
  readonly root: string;
  readonly namespace: string | undefined;
  readonly plural: string;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

function parsePath(path: string): ParsedPath {
  const groups = PATH.exec(path)?.groups;
  if (groups === undefined) throw new Error(`${path} is no path of an API`);
  const { root = '', namespace, plural = '', name, subresource } = groups;
  return { root, namespace, plural, name, subresource };
}

function refusal({ method = 'GET', path }: ApiRequest, code: number, reason: string): ApiError {
  return new ApiError(`${method} ${path}`, code, { kind: 'Status', code, reason, message: reason });
}
