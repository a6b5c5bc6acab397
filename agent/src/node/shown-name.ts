import { quote } from '@runtime-enforcer/api/field-error';
import { isDnsSubdomain } from '@runtime-enforcer/api/kubernetes-name';

/** A name of a tenant, safe to print: as it is if Kubernetes could have taken it, otherwise quoted and shortened. */
export function shownName(name: string): string {
  return isDnsSubdomain(name) ? name : quote(name);
}
