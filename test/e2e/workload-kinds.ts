import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { WorkloadKind } from '@runtime-enforcer/api/workload';
import { TOOLBOX_IMAGE } from '../images/names.ts';
import { LS, SHELL, SLEEP } from './workload.ts';

/** Starts what a list of the tests holds, over and over. */
export const LISTED_WORK = `while true; do ${SLEEP} 1; ${LS} / > /dev/null; done`;

/** A container of the test image that runs a script. */
export function container(name: string, script: string, more: object = {}): object {
  return { name, image: TOOLBOX_IMAGE, command: [SHELL, '-c', script], ...more };
}

interface PodOptions {
  /** Left out for a pod that names none. */
  readonly policy?: string;
  /** Added to the pod's spec, or instead of parts of it. */
  readonly spec?: object;
}

/** A pod, or the template of one, with one container `main` that starts what is listed. */
export function podTemplate(app: string, { policy, spec = {} }: PodOptions) {
  return {
    metadata: { name: app, labels: { app, ...(policy !== undefined && { [POLICY_LABEL]: policy }) } },
    spec: { terminationGracePeriodSeconds: 0, containers: [container('main', LISTED_WORK)], ...spec },
  };
}

/** A pod on its own. */
export function barePod(name: string, options: PodOptions): object {
  return { apiVersion: 'v1', kind: 'Pod', ...podTemplate(name, options) };
}

/** The kinds of {@link workload}, by which a pod is made of something else. */
export const KINDS = [
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'Job',
  'CronJob',
] as const satisfies readonly WorkloadKind[];

/** A workload of any kind, whose pods have the label `app` with its name. */
export function workload(
  kind: (typeof KINDS)[number],
  name: string,
  options: PodOptions & { readonly replicas?: number },
): object {
  const template = podTemplate(name, options);
  const forever = { selector: { matchLabels: { app: name } }, template };
  const once = {
    backoffLimit: 0,
    template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } },
  };
  const metadata = { name };
  switch (kind) {
    case 'Deployment':
      return {
        ...{ apiVersion: 'apps/v1', kind, metadata },
        spec: { ...forever, replicas: options.replicas ?? 1 },
      };
    case 'StatefulSet':
      return { apiVersion: 'apps/v1', kind, metadata, spec: { ...forever, serviceName: name } };
    case 'DaemonSet':
      return { apiVersion: 'apps/v1', kind, metadata, spec: forever };
    case 'Job':
      return { apiVersion: 'batch/v1', kind, metadata, spec: once };
    case 'CronJob':
      return {
        ...{ apiVersion: 'batch/v1', kind, metadata },
        spec: { schedule: '* * * * *', concurrencyPolicy: 'Forbid', jobTemplate: { spec: once } },
      };
  }
}
