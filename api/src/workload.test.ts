import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { proposalName, workloadFromPod, type Workload, type WorkloadKind } from './workload.ts';

const TEMPLATE_HASH = 'pod-template-hash';
const REVISION_HASH = 'controller-revision-hash';
const SET_POD = 'statefulset.kubernetes.io/pod-name';
const JOB = 'batch.kubernetes.io/job-name';
const OLD_JOB = 'job-name';

const of = (podName: string, labels: Record<string, string>) =>
  workloadFromPod(podName, new Map(Object.entries(labels)));
const whole = (kind: WorkloadKind, name: string): Workload => ({ kind, name, truncated: false });
const cut = (kind: WorkloadKind, name: string): Workload => ({ kind, name, truncated: true });

describe('workloadFromPod', () => {
  const long = (length: number) => 'w'.repeat(length);

  it.each<[string, string, Record<string, string>, Workload]>([
    ['Deployment', 'web-6d4b75cb6d-x7x9z', { [TEMPLATE_HASH]: '6d4b75cb6d' }, whole('Deployment', 'web')],
    [
      'Deployment whose name leaves four characters of the hash',
      `${long(53)}-6d4bx7x9z`,
      { [TEMPLATE_HASH]: '6d4b75cb6d' },
      whole('Deployment', long(53)),
    ],
    [
      'Deployment whose name leaves three characters of the hash',
      `${long(54)}-6d4x7x9z`,
      { [TEMPLATE_HASH]: '6d4b75cb6d' },
      cut('Deployment', `${long(54)}-6d4-trnc`),
    ],
    [
      'Deployment whose name leaves a dash and no hash',
      `${long(57)}-x7x9z`,
      { [TEMPLATE_HASH]: '6d4b75cb6d' },
      cut('Deployment', `${long(57)}-trnc`),
    ],
    [
      'Deployment whose name leaves neither dash nor hash',
      `${long(58)}x7x9z`,
      { [TEMPLATE_HASH]: '6d4b75cb6d' },
      cut('Deployment', `${long(58)}-trnc`),
    ],
    [
      'StatefulSet',
      'data-base-0',
      { [SET_POD]: 'data-base-0', [REVISION_HASH]: 'data-base-5f7', 'apps.kubernetes.io/pod-index': '0' },
      whole('StatefulSet', 'data-base'),
    ],
    ['DaemonSet', 'log-agent-x7x9z', { [REVISION_HASH]: '77f5' }, whole('DaemonSet', 'log-agent')],
    [
      'DaemonSet with a cut name',
      `${long(58)}x7x9z`,
      { [REVISION_HASH]: '77f5' },
      cut('DaemonSet', `${long(58)}-trnc`),
    ],
    [
      'DaemonSet with a cut name that holds a dash',
      `log-${long(54)}x7x9z`,
      { [REVISION_HASH]: '77f5' },
      cut('DaemonSet', `log-${long(54)}-trnc`),
    ],
    [
      'CronJob by both labels',
      'backup-28912345-x7x9z',
      { [OLD_JOB]: 'backup-28912345', [JOB]: 'backup-28912345' },
      whole('CronJob', 'backup'),
    ],
    [
      'CronJob by the new label',
      'backup-28912345-x7x9z',
      { [JOB]: 'backup-28912345' },
      whole('CronJob', 'backup'),
    ],
    [
      'CronJob by the old label',
      'backup-28912345-x7x9z',
      { [OLD_JOB]: 'backup-28912345' },
      whole('CronJob', 'backup'),
    ],
    ['Job', 'migrate-v2-x7x9z', { [OLD_JOB]: 'migrate-v2', [JOB]: 'migrate-v2' }, whole('Job', 'migrate-v2')],
    ['pod on its own', 'debug', { app: 'debug' }, whole('Pod', 'debug')],
    ['ReplicaSet without a Deployment', 'web-x7x9z', { app: 'web' }, whole('Pod', 'web-x7x9z')],
  ])('%s', (_, podName, labels, workload) => {
    expect(of(podName, labels)).toEqual(workload);
  });

  it.each<[string, string, Record<string, string>, Workload]>([
    ['a Job of seven digits', 'x', { [JOB]: 'run-1234567' }, whole('Job', 'run-1234567')],
    ['a Job of eleven digits', 'x', { [JOB]: 'run-12345678901' }, whole('Job', 'run-12345678901')],
    ['a Job of digits only', 'x', { [JOB]: '12345678' }, whole('Job', '12345678')],
    ['a name shorter than its random end', 'abc', { [TEMPLATE_HASH]: '6d4b75cb6d' }, whole('Pod', 'abc')],
    ['the same of a DaemonSet', 'abc', { [REVISION_HASH]: '77f5' }, whole('Pod', 'abc')],
    ['a DaemonSet of no name', '-x7x9z', { [REVISION_HASH]: '77f5' }, whole('Pod', '-x7x9z')],
    [
      'nothing but a hash',
      '-6d4b75cb6d-x7x9z',
      { [TEMPLATE_HASH]: '6d4b75cb6d' },
      cut('Deployment', '-6d4b75cb6d-trnc'),
    ],
    ['a StatefulSet label without a dash', 'data', { [SET_POD]: 'data' }, whole('Pod', 'data')],
    ['a StatefulSet label of another pod', 'mine', { [SET_POD]: 'victim-0' }, whole('Pod', 'mine')],
    ['an empty job name', 'x', { [JOB]: '' }, whole('Pod', 'x')],
    ['an empty hash', 'web-x7x9z', { [TEMPLATE_HASH]: '' }, cut('Deployment', 'web-trnc')],
    ['an empty name', '', { [TEMPLATE_HASH]: 'x', [REVISION_HASH]: 'x' }, whole('Pod', '')],
  ])('answers %s', (_, podName, labels, workload) => {
    expect(of(podName, labels)).toEqual(workload);
  });

  it('answers any name and labels, quickly, and with a valid proposal name or an error', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.stringMatching(/^[-a0]{0,30}$/),
      fc.constantFrom('-'.repeat(100_000), `-${'0'.repeat(100_000)}`, '../../etc'),
    );
    const labels = fc.dictionary(
      fc.constantFrom(TEMPLATE_HASH, REVISION_HASH, SET_POD, JOB, OLD_JOB),
      hostile,
    );
    fc.assert(
      fc.property(hostile, labels, (podName, given) => {
        const named = proposalName(of(podName, given), 'accept');
        if (named.ok) expect(named.value).toMatch(/^[a-z]+-[-a-z0-9.]{0,250}[a-z0-9]$/);
        else expect(named.errors).toHaveLength(1);
      }),
    );
  });
});

describe('proposalName', () => {
  it.each([
    ['Deployment', 'deploy-web'],
    ['ReplicaSet', 'rs-web'],
    ['DaemonSet', 'ds-web'],
    ['StatefulSet', 'sts-web'],
    ['CronJob', 'cronjob-web'],
    ['Job', 'job-web'],
  ] as const)('of a %s is %s', (kind, name) => {
    expect(proposalName(whole(kind, 'web'))).toEqual({ ok: true, value: name });
  });

  it('of a pod on its own needs the caller to accept it', () => {
    expect(proposalName(whole('Pod', 'debug'))).toMatchObject({
      errors: [{ message: 'pod "debug" belongs to no workload', remedy: 'write the policy by hand' }],
    });
    expect(proposalName(whole('Pod', 'debug'), 'accept')).toEqual({ ok: true, value: 'pod-debug' });
  });

  it('has at most 253 characters', () => {
    expect(proposalName(whole('Deployment', 'w'.repeat(246))).ok).toBe(true);
    expect(proposalName(whole('Deployment', 'w'.repeat(247)))).toMatchObject({
      errors: [{ path: 'metadata.name', message: expect.stringContaining('has 254 characters') as string }],
    });
  });

  it.each(['Web', 'we b', '../x', 'web-', 'we\nb', ''])('refuses the workload name %j', (name) => {
    expect(proposalName(whole('Deployment', name)).ok).toBe(false);
  });
});
