import { fieldError, quote, type FieldError, type PathSegment } from './field-error.ts';
import type { Check } from './schema.ts';

/** Bounds of RFC 1123 names as Kubernetes has them, in characters. */
export const MAX_SUBDOMAIN_CHARACTERS = 253;
export const MAX_LABEL_CHARACTERS = 63;

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const LABEL_RULE =
  'at most 63 lower-case letters, digits and "-", starting and ending with a letter or digit';
const SUBDOMAIN_RULE =
  'lower-case letters, digits, "-" and ".", every part starting and ending with a letter or digit';

/** A DNS label: the name of a container or a namespace. */
export function isDnsLabel(name: string): boolean {
  return name.length <= MAX_LABEL_CHARACTERS && LABEL.test(name);
}

/** A DNS subdomain: the name of a pod, a policy and most other objects. */
export function isDnsSubdomain(name: string, max = MAX_SUBDOMAIN_CHARACTERS): boolean {
  return name.length <= max && SUBDOMAIN.test(name);
}

/** Why a text is not the name of an object of at most `max` characters; undefined if it is one. */
export function objectNameError(
  name: string,
  at: readonly PathSegment[],
  max = MAX_SUBDOMAIN_CHARACTERS,
): FieldError | undefined {
  if (isDnsSubdomain(name, max)) return undefined;
  const message =
    name.length > max
      ? `the name ${quote(name)} has ${name.length} characters`
      : `${quote(name)} is not a name`;
  return fieldError(at, { message, expected: `at most ${max} ${SUBDOMAIN_RULE}` });
}

export function objectName(max = MAX_SUBDOMAIN_CHARACTERS): Check<string> {
  return (input, at, findings) => {
    const error =
      typeof input === 'string'
        ? objectNameError(input, at, max)
        : fieldError(at, { message: 'the name is not text', expected: `at most ${max} ${SUBDOMAIN_RULE}` });
    if (error === undefined) return input as string;
    findings.errors.push(error);
    return null;
  };
}

/** The name of a container or a namespace. */
export const dnsLabel: Check<string> = (input, at, findings) => {
  if (typeof input === 'string' && isDnsLabel(input)) return input;
  const shown = typeof input === 'string' ? quote(input) : 'what stands here';
  findings.errors.push(fieldError(at, { message: `${shown} is not a DNS label`, expected: LABEL_RULE }));
  return null;
};
