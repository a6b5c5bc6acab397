/** The parts of an object's metadata that this workspace reads. Everything else is kept as it came. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** An object of the API as the JSON that it came as. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** `namespace/name`, or the name alone for what is in no namespace. */
export function objectKey(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** The two parts of an {@link objectKey}. */
export function splitKey(key: string): { readonly namespace?: string; readonly name: string } {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** Whether parsed JSON has the shape of an object with a name; what its other fields hold is not looked at. */
export function isKubeObject(json: unknown): json is KubeObject {
  return isJsonObject(json) && isJsonObject(json['metadata']) && typeof json['metadata']['name'] === 'string';
}

export function isJsonObject(json: unknown): json is Record<string, unknown> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** The object without `metadata.managedFields`, which is often its larger half and never needed here. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  if (object.metadata['managedFields'] === undefined) return object;
  const metadata = { ...object.metadata, managedFields: undefined };
  Reflect.deleteProperty(metadata, 'managedFields');
  return { ...object, metadata };
}
