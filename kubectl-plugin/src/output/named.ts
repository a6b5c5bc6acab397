import { quote } from '@runtime-enforcer/api/field-error';
import type { ObjectPlace } from '../cluster/objects.ts';

/** For sentences: `WorkloadPolicy "web" in namespace "shop"`. */
export function named(kind: string, { namespace, name }: ObjectPlace): string {
  return `${kind} ${quote(name)} in namespace ${quote(namespace)}`;
}

/** `1 path`, `3 paths`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
