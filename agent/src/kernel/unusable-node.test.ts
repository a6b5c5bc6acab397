import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const AGENT = join(import.meta.dirname, '..', 'main.ts');
const POLICY = `apiVersion: runtimeenforcer.kubewarden.io/v1alpha1
kind: WorkloadPolicy
metadata: { name: web, namespace: shop }
spec: { mode: protect, rulesByContainer: { main: { executables: { allowed: [/usr/bin/ls] } } } }
`;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'enforcer-unusable-'));
  writeFileSync(join(directory, 'web.yaml'), POLICY);
});
afterAll(() => rmSync(directory, { recursive: true }));

test('field 74: where nothing can be blocked the agent says why and ends, and calls no policy loaded', () => {
  // Root without any capability, as in a container that was given none, on whatever kernel this is.
  const powerless = ['--bounding-set=-all', '--inh-caps=-all', '--'];
  const options = ['--policy-dir', directory, '--state-dir', join(directory, 'state')];
  const { status, stdout, stderr, error } = spawnSync(
    'setpriv',
    [...powerless, process.execPath, AGENT, ...options],
    { encoding: 'utf8' },
  );
  expect(error).toBeUndefined();
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^agent: this node cannot run the agent: .*CAP_BPF and CAP_PERFMON/m);
  expect(stderr).toMatch(/No hook can deny an exec here\./);
  expect(stderr).not.toMatch(/policy loaded|agent is ready/);
});
