import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type DoctorVisits, doctorVisits, findingLine } from '../kubectl/doctor-findings.ts';
import { eventually } from '../runtime/eventually.ts';
import { noteState } from './diagnosis.ts';
import { AGENTS, IMAGE_REPOSITORY, install, NAMESPACE } from './installation.ts';
import { type Person, person } from './person.ts';
import { policyObject } from './policy-object.ts';
import { startWholeCluster, type WholeCluster } from './whole-cluster.ts';
import { boundPod, CAT, LS, SHELL, SLEEP } from './workload.ts';

const TENANTS = 'shop';
const POLICY = 'till';
const DENIED = /operation not permitted/i;
const DEBUGGER = 'runtime-enforcer-debugger';
/** The debugger looks again until what was started has settled. */
const SETTLED_MS = 120_000;
const DEBUGGER_VALUES = {
  debugger: {
    ...{ enabled: true, image: { repository: `${IMAGE_REPOSITORY}/debugger` }, interval: '5s' },
    resources: { limits: { cpu: '2', memory: '256Mi' }, requests: { cpu: '50m', memory: '256Mi' } },
  },
};

let cluster: WholeCluster;
let tenant: Person;
let operator: Person;
let doctor: DoctorVisits;

beforeAll(async () => {
  cluster = await startWholeCluster(TENANTS);
  tenant = person(cluster, TENANTS);
  operator = person(cluster, NAMESPACE);
  doctor = doctorVisits(cluster.user);
  await tenant.kubectl(`create namespace ${TENANTS}`);
  await install(cluster, DEBUGGER_VALUES);
  await tenant.kubectl('apply -f -', JSON.stringify(policyObject(POLICY, { main: [SHELL, LS, SLEEP] })));
  await tenant.kubectl('apply -f -', boundPod('till', POLICY, `while true; do ${SLEEP} 1; done`));
  await tenant.kubectl('wait --for=condition=Ready pod/till --timeout=180s');
});
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await noteState(cluster, task.name);
});
afterAll(async () => {
  await cluster.stop();
});

/** Runs the debugger in its pod, once. */
async function compareOnce(): Promise<{ readonly code: number | null; readonly text: string }> {
  return await operator.exec(
    `deployment/${DEBUGGER}`,
    ...['debugger', '--once', `--agent-server-name=${AGENTS}`],
  );
}

async function aligned(): Promise<void> {
  let seen = '';
  await eventually(
    () => `the debugger finds nothing; it says:\n${seen}`,
    async () => {
      const { code, text } = await compareOnce();
      seen = text;
      return code === 0 && /^=== Node "[^"]+": caches are aligned$/m.test(text) ? true : undefined;
    },
    SETTLED_MS,
  );
}

/** All that doctor finds and is not only worth knowing. */
async function wrong(): Promise<readonly string[]> {
  return (await doctor.diagnose()).filter(({ severity }) => severity !== 'note').map(findingLine);
}

async function nothingWrong(): Promise<void> {
  await eventually(
    'doctor finds nothing wrong',
    async () => ((await wrong()).length === 0 ? true : undefined),
    SETTLED_MS,
  );
}

it('is healthy: doctor finds nothing wrong, and the debugger says that the caches are aligned', async () => {
  await nothingWrong();
  await aligned();
  await eventually(
    'the debugger says so in its log, too',
    async () => {
      const log = await operator.kubectl(`logs deployment/${DEBUGGER} --tail=20`);
      return /^=== Node "[^"]+": caches are aligned$/m.test(log) ? true : undefined;
    },
    SETTLED_MS,
  );
});

it('is repaired by the command that doctor tells after an operator has overridden the policies', async () => {
  await operator.exec(`daemonset/${AGENTS}`, 'agent', 'override', '--mode', 'monitor');
  expect((await tenant.exec('pod/till', CAT, '/etc/passwd')).code).toBe(0);
  await doctor.repaired(await doctor.found('an operator has set all its policies to monitor'));
  await nothingWrong();
  expect((await tenant.exec('pod/till', CAT, '/etc/passwd')).text).toMatch(DENIED);
});

it('is repaired by the command that doctor tells after somebody has released the node, which the debugger sees', async () => {
  await operator.exec(`daemonset/${AGENTS}`, 'agent', 'release');
  const finding = await doctor.found('somebody has taken all enforcement off the node (agent release)');
  expect((await tenant.exec('pod/till', CAT, '/etc/passwd')).code).toBe(0);
  const { code, text } = await compareOnce();
  expect(text).toMatch(/^=== Node "[^"]+": found differences$/m);
  expect(text).toMatch(/^- pod shop\/till \([-0-9a-f]+\) is missing from the agent cache$/m);
  expect(code).toBe(3);
  await doctor.repaired(finding);
  await nothingWrong();
  expect((await tenant.exec('pod/till', CAT, '/etc/passwd')).text).toMatch(DENIED);
  await aligned();
});

it('tells more where no command repairs: each repair that looks runs', async () => {
  const [agent = ''] = (
    await operator.kubectl('get pods -l app.kubernetes.io/component=agent -o name')
  ).split('\n');
  const checked = await operator.exec(agent, 'agent', 'check');
  expect(checked.text).toContain('ok');
  expect(checked.code).toBe(0);
  await operator.kubectl(`logs ${agent} --all-containers --tail=50`);
});
