import { policyDigest } from '@runtime-enforcer/api/policy-digest';
import { expect, it } from 'vitest';
import { exampleLog, openExampleMaps } from '../kernel/kernel-maps-example.ts';
import { loadNative } from '../kernel/native.ts';
import { examplePolicy } from './policy-example.ts';
import { createPolicyTable } from './policy-table.ts';

it('a policy that is loaded has the digest by which the controller knows it', async () => {
  const native = loadNative();
  const { maps, close } = openExampleMaps(native);
  const table = await createPolicyTable({
    native,
    maps,
    log: exampleLog().log,
    countFailure: () => undefined,
  });
  for (const policy of [
    examplePolicy('web', { app: ['/bin/b', '/bin/a', String.raw`/bin/\xff`], side: [] }),
    examplePolicy('web', { side: ['/bin/b'], 'a-first': ['/bin/a'] }, { unlistedContainers: 'deny' }),
    examplePolicy('web', {}, { unlistedContainers: 'deny' }),
    examplePolicy('web', {}),
  ]) {
    const { state, digest } = await table.apply(policy);
    expect({ state, digest }).toEqual({ state: 'ready', digest: policyDigest(policy.spec) });
  }
  await table.settled();
  close();
});

it('has that digest again once no container holds rules that the policy has dropped', async () => {
  const native = loadNative();
  const { maps, close } = openExampleMaps(native);
  const { log } = exampleLog();
  const table = await createPolicyTable({ native, maps, log, countFailure: () => undefined });
  await table.apply(examplePolicy('web', { app: ['/bin/a'], side: ['/bin/b'] }));
  const answer = await table.acquire('shop/web', 'side');
  const fewer = examplePolicy('web', { app: ['/bin/a'] });
  await table.apply(fewer);
  expect(table.state('shop/web')?.digest).not.toBe(policyDigest(fewer.spec));
  if (answer.kind === 'enforced') answer.use.release();
  expect(table.state('shop/web')).toMatchObject({
    ...{ state: 'ready', mode: 'protect', paths: 1 },
    digest: policyDigest(fewer.spec),
  });
  await table.settled();
  close();
});
