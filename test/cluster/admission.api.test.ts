import { ApiError } from '@runtime-enforcer/kube/api-error';
import { collectionPath, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { installCustomResources } from './custom-resources.ts';
import { testedKubernetesMinor } from './kubernetes-binary.ts';

const NAMESPACE = 'shop';
const ADMISSION = { group: 'admissionregistration.k8s.io', version: 'v1' };
const VALIDATING_POLICIES: Resource = { ...ADMISSION, plural: 'validatingadmissionpolicies' };
const VALIDATING_BINDINGS: Resource = { ...ADMISSION, plural: 'validatingadmissionpolicybindings' };
/** The first minor version of Kubernetes 1 that serves MutatingAdmissionPolicies for good, in v1. */
const FIRST_MINOR_WITH_MUTATING = 36;

const MESSAGE = 'only an administrator takes a policy out of protect';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  await plane.serviceAccount(NAMESPACE, 'anyone');
});
afterAll(async () => await plane.stop());

const create = async (resource: Resource, body: object, namespace?: string): Promise<unknown> =>
  await plane.admin.client.request({ method: 'POST', path: collectionPath(resource, namespace), body });

const workloadPolicy = (name: string, mode: string): object => ({
  apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
  kind: 'WorkloadPolicy',
  metadata: { name },
  spec: { mode, rulesByContainer: { app: { executables: { allowed: ['/bin/server'] } } } },
});

/** Asks for another mode without doing it, and tells what the API server says against it. */
async function refusal(name: string, mode: string): Promise<ApiError | undefined> {
  try {
    await plane.admin.client.request({
      method: 'PATCH',
      path: objectPath({ resource: WORKLOAD_POLICIES, namespace: NAMESPACE, name }),
      query: { dryRun: 'All' },
      patchType: 'application/merge-patch+json',
      body: { spec: { mode } },
    });
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

async function servedResources(version: string): Promise<readonly string[]> {
  const answer = await plane.admin.client.request({ path: `/apis/${ADMISSION.group}/${version}` });
  return (answer as { readonly resources: readonly { readonly name: string }[] }).resources.map(
    ({ name }) => name,
  );
}

describe('admission', () => {
  it('serves the kinds of policies that the product looks for', async () => {
    const served = await servedResources('v1');
    expect(served).toContain(VALIDATING_POLICIES.plural);
    expect(served).toContain(VALIDATING_BINDINGS.plural);
    const isForGood = testedKubernetesMinor() >= FIRST_MINOR_WITH_MUTATING;
    expect(served.includes('mutatingadmissionpolicies')).toBe(isForGood);
  });

  it('lets a ValidatingAdmissionPolicy judge what becomes of a WorkloadPolicy', async () => {
    const metadata = { name: 'stay-in-protect' };
    await create(WORKLOAD_POLICIES, workloadPolicy('guarded', 'protect'), NAMESPACE);
    await create(WORKLOAD_POLICIES, workloadPolicy('open', 'monitor'), NAMESPACE);
    expect(await refusal('guarded', 'monitor')).toBeUndefined();
    await create(VALIDATING_POLICIES, {
      metadata,
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: [WORKLOAD_POLICIES.group],
              apiVersions: [WORKLOAD_POLICIES.version],
              resources: [WORKLOAD_POLICIES.plural],
              operations: ['UPDATE'],
            },
          ],
        },
        validations: [
          {
            expression: "oldObject.spec.mode != 'protect' || object.spec.mode == 'protect'",
            message: MESSAGE,
          },
        ],
      },
    });
    await create(VALIDATING_BINDINGS, {
      metadata,
      spec: { policyName: metadata.name, validationActions: ['Deny'] },
    });
    const error = await eventually('the policy is in force', async () => await refusal('guarded', 'monitor'));
    expect(error).toMatchObject({ code: 422 });
    expect(error.message).toContain(MESSAGE);
    expect(await refusal('open', 'protect')).toBeUndefined();
  });
});
