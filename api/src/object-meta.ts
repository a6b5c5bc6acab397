import { DEFAULT_NAMESPACE } from './keys.ts';
import { dnsLabel, objectName } from './kubernetes-name.ts';
import { flag, list, mapOf, mapped, object, text, wholeNumber, type Check } from './schema.ts';
import { timestamp } from './timestamp.ts';

/** The part of Kubernetes' ObjectMeta that the product reads or writes. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly annotations: ReadonlyMap<string, string>;
  readonly ownerReferences: readonly OwnerReference[];
}

/** An agent writes kind and name only; admission completes the rest. */
export interface OwnerReference {
  readonly kind: string;
  readonly name: string;
  readonly apiVersion?: string;
  readonly uid?: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Bound of all annotations of an object together, as the API server has it, and more than any label. */
const MAX_VALUE_CHARACTERS = 262_144;
const MAX_ENTRIES = 1000;

const short = text({ max: 253 });
const textMap = mapOf(text({ max: 317 }), text({ max: MAX_VALUE_CHARACTERS }), { max: MAX_ENTRIES });
/** What the API server keeps for itself; the product neither reads nor writes it. */
const ignored: Check<never> = () => null;
/** `creationTimestamp: null` stands in what Kubernetes' own tools print for a new object. */
const timestampOrNull: Check<string> = (input, at, findings) =>
  input === null ? null : timestamp(input, at, findings);

const ownerReference: Check<OwnerReference> = object(
  { kind: short, name: short },
  { apiVersion: short, uid: short, controller: flag, blockOwnerDeletion: flag },
);

/** @param maxName longest name of the kind, in characters */
export function objectMeta(maxName?: number): Check<ObjectMeta> {
  const check = object(
    { name: objectName(maxName) },
    {
      namespace: dnsLabel,
      uid: short,
      resourceVersion: short,
      generation: wholeNumber({ min: 0 }),
      creationTimestamp: timestampOrNull,
      deletionTimestamp: timestamp,
      labels: textMap,
      annotations: textMap,
      ownerReferences: list(ownerReference, { max: MAX_ENTRIES }),
      generateName: ignored,
      deletionGracePeriodSeconds: ignored,
      finalizers: ignored,
      managedFields: ignored,
      selfLink: ignored,
    },
  );
  return mapped(check, (meta) => ({
    ...meta,
    namespace: meta.namespace ?? DEFAULT_NAMESPACE,
    labels: meta.labels ?? new Map<string, string>(),
    annotations: meta.annotations ?? new Map<string, string>(),
    ownerReferences: meta.ownerReferences ?? [],
  }));
}
