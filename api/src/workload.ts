import { fieldError, quote, type Parsed } from './field-error.ts';
import { objectNameError } from './kubernetes-name.ts';

/** What a pod belongs to. `Pod` is a pod on its own, and every pod whose labels tell nothing consistent. */
export interface Workload {
  readonly kind: WorkloadKind;
  readonly name: string;
  /** Kubernetes shortened the pod's name so far that the workload's cannot be told from it. */
  readonly truncated: boolean;
}

export type WorkloadKind =
  'Deployment' | 'ReplicaSet' | 'DaemonSet' | 'StatefulSet' | 'CronJob' | 'Job' | 'Pod';

/** Prefix of a proposal's name by the kind of its workload. */
export const SHORT_KINDS = {
  Deployment: 'deploy',
  ReplicaSet: 'rs',
  DaemonSet: 'ds',
  StatefulSet: 'sts',
  CronJob: 'cronjob',
  Job: 'job',
  Pod: 'pod',
} as const satisfies Record<WorkloadKind, string>;

/** Stands for the part of a workload's name that was cut off. */
export const TRUNCATED_SUFFIX = '-trnc';

/** Length of the random end that Kubernetes gives to a generated pod name. */
const RANDOM_SUFFIX_CHARACTERS = 5;
/** Shortest beginning of `-<hash>-` at the end of a shortened name that is taken for it. */
const MIN_HASH_CHARACTERS = 5;
/** A CronJob names its Jobs after the scheduled minute. */
const CRON_JOB_NAME = /^(.+)-\d{8,10}$/s;

/**
 * The workload of a pod, by its name and labels alone, which is all that a container runtime knows. Both are
 * tenant input: nothing here proves that the workload exists, and no input makes this fail.
 */
export function workloadFromPod(podName: string, labels: ReadonlyMap<string, string>): Workload {
  return (
    deployment(podName, labels.get('pod-template-hash')) ??
    statefulSet(podName, labels.get('statefulset.kubernetes.io/pod-name')) ??
    daemonSet(podName, labels.get('controller-revision-hash')) ??
    job(labels.get('job-name') ?? labels.get('batch.kubernetes.io/job-name')) ?? {
      kind: 'Pod',
      name: podName,
      truncated: false,
    }
  );
}

/**
 * The name of a workload's proposal, such as `deploy-web`.
 * @param barePods whether a pod on its own may have a proposal
 */
export function proposalName(workload: Workload, barePods: 'refuse' | 'accept' = 'refuse'): Parsed<string> {
  if (workload.kind === 'Pod' && barePods === 'refuse') {
    return {
      ok: false,
      errors: [
        fieldError(['kind'], {
          message: `pod ${quote(workload.name)} belongs to no workload`,
          expected: 'a Deployment, DaemonSet, StatefulSet, CronJob or Job',
          remedy: 'write the policy by hand',
        }),
      ],
    };
  }
  const name = `${SHORT_KINDS[workload.kind]}-${workload.name}`;
  const error = objectNameError(name, ['metadata', 'name']);
  return error === undefined ? { ok: true, value: name } : { ok: false, errors: [error] };
}

function deployment(podName: string, hash: string | undefined): Workload | undefined {
  if (hash === undefined) return undefined;
  const base = podName.slice(0, -RANDOM_SUFFIX_CHARACTERS);
  const pattern = `-${hash}-`;
  const longest = Math.min(pattern.length, base.length - 1);
  for (let length = longest; length >= MIN_HASH_CHARACTERS; length--) {
    if (!base.endsWith(pattern.slice(0, length))) continue;
    return { kind: 'Deployment', name: base.slice(0, -length), truncated: false };
  }
  return truncated('Deployment', base);
}

/** The label repeats the pod's name; a set of which that is not true is not Kubernetes' doing. */
function statefulSet(podName: string, label: string | undefined): Workload | undefined {
  const dash = label === podName ? label.lastIndexOf('-') : -1;
  return dash > 0 ? { kind: 'StatefulSet', name: podName.slice(0, dash), truncated: false } : undefined;
}

function daemonSet(podName: string, label: string | undefined): Workload | undefined {
  if (label === undefined) return undefined;
  const base = podName.slice(0, -RANDOM_SUFFIX_CHARACTERS);
  if (!base.endsWith('-') || base === '-') return truncated('DaemonSet', base);
  return { kind: 'DaemonSet', name: base.slice(0, -1), truncated: false };
}

function job(label: string | undefined): Workload | undefined {
  if (label === undefined || label === '') return undefined;
  const cronJob = CRON_JOB_NAME.exec(label)?.[1];
  return cronJob === undefined
    ? { kind: 'Job', name: label, truncated: false }
    : { kind: 'CronJob', name: cronJob, truncated: false };
}

function truncated(kind: WorkloadKind, base: string): Workload | undefined {
  const name = base.replace(/-$/, '');
  return name === '' ? undefined : { kind, name: `${name}${TRUNCATED_SUFFIX}`, truncated: true };
}
