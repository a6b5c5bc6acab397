import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type Enforcer, startEnforcer } from '../runtime/enforcer.ts';
import { CONFORMANCE_IMAGE, CRITEST_IN_GUEST, IMAGE_IN_GUEST } from './names.ts';
import { SPECS } from './specs.ts';

const run = promisify(execFile);
const POD_NETWORK = {
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      ipam: { type: 'host-local', ranges: [[{ subnet: '10.88.0.0/24' }]] },
    },
  ],
};
/** What means something else in a regular expression. */
const SPECIAL = /[.*+?^${}()|[\]\\]/g;
const TEST_IMAGES = '/tmp/test-images.yaml';

/** How one spec ended, as ginkgo reports it. */
interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly Failure?: { readonly Message: string };
}

const NAMES = Object.entries(SPECS).flatMap(([context, leaves]) =>
  leaves.map((leaf) => `${context} ${leaf}`),
);

/** Runs the named specs. @returns how each ended: `passed`, or why not */
async function conformance(report: string): Promise<ReadonlyMap<string, string>> {
  const focus = NAMES.map((name) => `${name.replaceAll(SPECIAL, '\\$&')}\\.?( \\[Conformance\\])?$`).join(
    '|',
  );
  const args = [
    ...['-runtime-endpoint', 'unix:///run/containerd/containerd.sock', '-test-images-file', TEST_IMAGES],
    ...['-ginkgo.focus', focus, '-ginkgo.json-report', report, '-ginkgo.no-color'],
  ];
  // It ends with 1 when a spec fails, which the report tells better.
  const said = await run(CRITEST_IN_GUEST, args, { maxBuffer: 2 ** 26 }).then(
    ({ stdout }) => stdout,
    (error: unknown) => (error as { stdout: string }).stdout,
  );
  const text = await readFile(report, 'utf8').catch(() => assert.fail(`critest made no report: ${said}`));
  const [suite] = JSON.parse(text) as readonly { readonly SpecReports: readonly SpecReport[] }[];
  const ended = new Map<string, string>();
  for (const { ContainerHierarchyTexts, LeafNodeText, State, Failure } of suite?.SpecReports ?? []) {
    const words = [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' ');
    const name = words.replace('[k8s.io] ', '').replace(/\.? \[Conformance\]$/, '');
    if (NAMES.includes(name))
      ended.set(name, State === 'passed' ? State : `${State}: ${Failure?.Message ?? ''}`);
  }
  return ended;
}

before(async () => {
  await mkdir('/etc/cni/net.d', { recursive: true });
  await writeFile('/etc/cni/net.d/10-bridge.conflist', JSON.stringify(POD_NETWORK));
  await run('ctr', ['-n', 'k8s.io', 'images', 'import', IMAGE_IN_GUEST]);
  await writeFile(
    TEST_IMAGES,
    `defaultTestContainerImage: ${CONFORMANCE_IMAGE}\nwebServerTestImage: ${CONFORMANCE_IMAGE}\n`,
  );
});

describe('CRI conformance', () => {
  let without: ReadonlyMap<string, string>;
  let beside: ReadonlyMap<string, string>;
  let enforcer: Enforcer;

  before(async () => {
    without = await conformance('/tmp/without.json');
    enforcer = await startEnforcer('conformance');
    beside = await conformance('/tmp/beside.json');
  });
  after(async () => {
    await enforcer.agent.signal('SIGTERM');
  });

  it('is asked of forty specs at least', () => {
    assert.ok(NAMES.length >= 40, `${NAMES.length}`);
    assert.equal(new Set(NAMES).size, NAMES.length);
  });

  for (const name of NAMES) {
    it(name, () => {
      assert.equal(without.get(name) ?? 'not run', 'passed', 'without the agent');
      assert.equal(beside.get(name) ?? 'not run', 'passed', 'beside the agent');
    });
  }

  it('was beside an agent that learned what the containers start', async () => {
    const files = await readdir(enforcer.learnDirectory, { recursive: true });
    const learned = files.filter((file) => file.endsWith('.yaml'));
    assert.ok(learned.length > 0);
    const [first = ''] = learned;
    assert.match(await readFile(join(enforcer.learnDirectory, first), 'utf8'), /allowed:\n\s+- \//);
  });
});
