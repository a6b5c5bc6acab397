import { readPolicyBinding } from '@runtime-enforcer/api/binding';
import { quote } from '@runtime-enforcer/api/field-error';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { type AdmissionVerdict, type Admit, ALLOWED } from './admission-review.ts';

/** What becomes of a new pod that names a policy which does not exist. */
export type UnknownPolicyAction = 'warn' | 'deny';
export const UNKNOWN_POLICY_ACTIONS = ['warn', 'deny'] as const satisfies readonly UnknownPolicyAction[];

const AUDIT_KEY = 'unknown-policy';
/** A static pod runs already; only its image in the API is asked about. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

export interface PolicyLabelOptions {
  readonly policyExists: (namespace: string, name: string, signal: AbortSignal) => Promise<boolean>;
  readonly unknownPolicy: UnknownPolicyAction;
}

/**
 * Tells whoever creates a pod, or a workload, that the policy which its label names does not exist, or that the label
 * stands where it binds nothing. Only pods are ever refused, and only by configuration: the agent does not start such
 * a container in any case.
 */
export function policyLabelAdmission({ policyExists, unknownPolicy }: PolicyLabelOptions): Admit {
  /** The policy that a label names and that does not exist, if it is so. */
  async function missing(namespace: string, label: string, signal: AbortSignal): Promise<string | undefined> {
    const binding = readPolicyBinding(new Map([[POLICY_LABEL, label]]));
    if (binding.kind === 'invalid') return label;
    if (binding.kind !== 'policy') return undefined;
    return (await policyExists(namespace, binding.policyName, signal)) ? undefined : label;
  }

  return async ({ operation, kind, namespace, object }, signal) => {
    if (object === undefined || operation === 'DELETE') return ALLOWED;
    if (kind === 'Pod') {
      const label = object.metadata.labels?.[POLICY_LABEL];
      const isMirror = object.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined;
      if (label === undefined || isMirror) return ALLOWED;
      const policy = await missing(namespace, label, signal);
      return policy === undefined ? ALLOWED : unknownPolicyOfPod(namespace, policy, unknownPolicy);
    }
    const label = templateLabels(kind, object)[POLICY_LABEL];
    if (typeof label !== 'string') return isLabelled(kind, object) ? misplacedLabel(kind) : ALLOWED;
    const policy = await missing(namespace, label, signal);
    if (policy === undefined) return ALLOWED;
    return {
      allowed: true,
      warnings: [
        `${unknown(namespace, policy)}; containers of this ${kind} will not start until it is created`,
      ],
      auditAnnotations: { [AUDIT_KEY]: `${namespace}/${policy}` },
    };
  };
}

function unknownPolicyOfPod(
  namespace: string,
  policy: string,
  action: UnknownPolicyAction,
): AdmissionVerdict {
  const what = unknown(namespace, policy);
  const auditAnnotations = { [AUDIT_KEY]: `${namespace}/${policy}` };
  if (action === 'warn') {
    const warnings = [`${what}; the pod's containers will not start until it is created`];
    return { allowed: true, warnings, auditAnnotations };
  }
  const message = `${what}; create it first, or correct the label ${POLICY_LABEL}`;
  return { allowed: false, refusal: { code: 403, message }, auditAnnotations };
}

function misplacedLabel(kind: string): AdmissionVerdict {
  return {
    allowed: true,
    warnings: [
      `the label ${POLICY_LABEL} binds nothing on a ${kind}: set it in ${TEMPLATE_PATHS.get(kind)?.join('.') ?? 'spec.template'}.metadata.labels`,
    ],
  };
}

function unknown(namespace: string, policy: string): string {
  return `WorkloadPolicy ${quote(policy)} does not exist in namespace ${quote(namespace)}`;
}

const POD_TEMPLATE = ['spec', 'template'];
const TEMPLATE_PATHS: ReadonlyMap<string, readonly string[]> = new Map([
  ['Deployment', POD_TEMPLATE],
  ['DaemonSet', POD_TEMPLATE],
  ['StatefulSet', POD_TEMPLATE],
  ['ReplicaSet', POD_TEMPLATE],
  ['Job', POD_TEMPLATE],
  ['CronJob', ['spec', 'jobTemplate', 'spec', 'template']],
]);

function templateLabels(kind: string, object: KubeObject): Record<string, unknown> {
  return labelsAt(object, TEMPLATE_PATHS.get(kind) ?? POD_TEMPLATE);
}

/** Whether the label stands on the workload itself, or on the jobs that a CronJob makes. */
function isLabelled(kind: string, object: KubeObject): boolean {
  const jobLabels = kind === 'CronJob' ? labelsAt(object, ['spec', 'jobTemplate']) : {};
  return POLICY_LABEL in labelsAt(object, []) || POLICY_LABEL in jobLabels;
}

function labelsAt(object: KubeObject, path: readonly string[]): Record<string, unknown> {
  let at: unknown = object;
  for (const field of [...path, 'metadata', 'labels']) at = isJsonObject(at) ? at[field] : undefined;
  return isJsonObject(at) ? at : {};
}
