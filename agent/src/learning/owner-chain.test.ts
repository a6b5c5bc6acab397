import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { controllerOf, labelsOf, podOwnerKind } from './owner-chain.ts';

const reference = (more: object = {}) => ({
  ...{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u', controller: true },
  ...more,
});
const owned = (ownerReferences: unknown): KubeObject => ({ metadata: { name: 'p', ownerReferences } });

describe('owners', () => {
  it('are those that control, with everything that tells them apart', () => {
    expect(controllerOf(owned([reference({ controller: false }), reference({ name: 'b' })]))?.name).toBe('b');
    for (const field of ['apiVersion', 'kind', 'name', 'uid', 'controller']) {
      expect(controllerOf(owned([reference({ [field]: undefined })])), field).toBeUndefined();
    }
    for (const more of [{ name: '' }, { uid: '' }, { uid: 7 }, { controller: 'true' }]) {
      expect(controllerOf(owned([reference(more)]))).toBeUndefined();
    }
  });

  it.each([
    ['apps/v1', 'ReplicaSet', true],
    ['apps/v1beta1', 'ReplicaSet', false],
    ['evil/v1', 'ReplicaSet', false],
    ['apps/v1', 'Deployment', false],
    ['batch/v1', 'CronJob', false],
    ['v1', 'Node', false],
    ['argoproj.io/v1alpha1', 'Rollout', false],
  ])('of a pod may be %s %s: %s', (apiVersion, kind, isKnown) => {
    expect(podOwnerKind({ apiVersion, kind, name: 'x', uid: 'u' }) !== undefined).toBe(isKnown);
  });

  it.each([
    [undefined],
    [{}],
    [{ selector: {} }],
    [{ selector: { matchLabels: {} } }],
    [{ selector: { matchLabels: { app: 7 } } }],
    [{ selector: { matchExpressions: [{ key: 'app', operator: 'Like' }] } }],
    [{ selector: { matchLabels: { constructor: 'x' } } }],
    [{ selector: { matchLabels: { app: 'db' } } }],
  ])('with the spec %j take no pod of the web', (spec) => {
    const kind = podOwnerKind(reference());
    expect(kind?.takes({ metadata: { name: 'web' }, spec }, { app: 'web' })).toBe(false);
  });

  it('of any JSON are read without failing', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (references, labels, spec) => {
        const object = {
          metadata: { name: 'p', ownerReferences: references, labels },
          spec,
        } as unknown as KubeObject;
        const kind = podOwnerKind(reference());
        const cronJob = podOwnerKind(reference({ apiVersion: 'batch/v1', kind: 'Job' }))?.owner;
        controllerOf(object);
        kind?.takes(object, labelsOf(object));
        cronJob?.takes(object, labelsOf(object));
      }),
    );
  });
});
