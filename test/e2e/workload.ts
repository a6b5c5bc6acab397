import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { yamlText } from '@runtime-enforcer/api/yaml-text';
import { TOOLBOX_IMAGE } from '../images/names.ts';

export const SHELL = '/bin/sh';
export const LS = '/usr/bin/ls';
export const SLEEP = '/usr/bin/sleep';
/** What no list of the tests holds. */
export const CAT = '/usr/bin/cat';
/** What the loop of {@link deployment} starts, as learning should find it. */
export const LOOP_PATHS = [SHELL, LS, SLEEP];

/** A directory of {@link boundPod} in memory: a full disk does not reach it. */
export const COUNTS = '/counts';

/** A Deployment whose container starts two programs over and over, as YAML. */
export function deployment(name: string, container: string): string {
  const labels = { app: name };
  return yamlText({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: [
            {
              name: container,
              image: TOOLBOX_IMAGE,
              command: [SHELL, '-c', `while true; do ${SLEEP} 2; ${LS} / > /dev/null; done`],
            },
          ],
        },
      },
    },
  });
}

/** A pod that names a policy and runs a script, as YAML. */
export function boundPod(name: string, policy: string, script: string): string {
  return yamlText({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { [POLICY_LABEL]: policy } },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image: TOOLBOX_IMAGE,
          command: [SHELL, '-c', script],
          volumeMounts: [{ name: 'counts', mountPath: COUNTS }],
        },
      ],
      volumes: [{ name: 'counts', emptyDir: { medium: 'Memory' } }],
    },
  });
}
