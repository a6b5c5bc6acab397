import { describe, expect, it } from 'vitest';
import { isOwnPod, ownPlaceFrom, PRODUCT, PRODUCT_LABEL } from './own-pods.ts';

const LABELS = new Map([[PRODUCT_LABEL, PRODUCT]]);
const OWN = ownPlaceFrom({ POD_UID: 'uid-of-the-agent', POD_NAMESPACE: 'enforcer-system' });
const POD = { podUid: 'other', namespace: 'shop', labels: new Map<string, string>() };

describe("the product's own pods", () => {
  it('field 66: are the agent’s own, by its uid, whatever else it says', () => {
    expect(isOwnPod({ ...POD, podUid: 'uid-of-the-agent' }, OWN)).toBe(true);
    expect(isOwnPod(POD, OWN)).toBe(false);
  });

  it('field 66: are those with its label in its namespace', () => {
    expect(isOwnPod({ ...POD, namespace: 'enforcer-system', labels: LABELS }, OWN)).toBe(true);
  });

  it.each<[string, Partial<typeof POD>]>([
    ['the label in another namespace', { labels: LABELS }],
    ['no label in its namespace', { namespace: 'enforcer-system' }],
    [
      'another product’s label in its namespace',
      { namespace: 'enforcer-system', labels: new Map([[PRODUCT_LABEL, 'runtime-enforcer-x']]) },
    ],
    ['a namespace that begins like its own', { namespace: 'enforcer-system-2', labels: LABELS }],
  ])('are not those with %s', (_what, change) => {
    expect(isOwnPod({ ...POD, ...change }, OWN)).toBe(false);
  });

  it('are none where the agent does not know its own place', () => {
    for (const environment of [{}, { POD_UID: '', POD_NAMESPACE: '' }]) {
      const nowhere = ownPlaceFrom(environment);
      expect(isOwnPod({ podUid: '', namespace: '', labels: LABELS }, nowhere)).toBe(false);
    }
  });
});
