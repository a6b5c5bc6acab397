import { after, before, describe } from 'node:test';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { openCri, type Cri } from './cri.ts';
import { startEnforcer, type Enforcer } from './enforcer.ts';
import { removePod, runPod, type Pod, type PodSpec } from './pod.ts';

/** What the tests of one suite share: one runtime and one agent. */
export interface EnforcedSuite {
  readonly cri: Cri;
  readonly enforcer: Enforcer;
  /** Runs a pod that names a policy, hands it over, and removes it whatever happens. */
  readonly withPod: (policy: string, spec: PodSpec, use: (pod: Pod) => Promise<void>) => Promise<void>;
}

/**
 * A suite of tests beside an agent that starts before them and ends after them.
 *
 * @param define registers the tests; `suite.enforcer` is there once they run
 */
export function enforcedSuite(
  name: string,
  define: (suite: EnforcedSuite) => void,
  agent: { readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
): void {
  describe(name, () => {
    const cri = openCri();
    let enforcer: Enforcer | undefined;
    before(async () => {
      enforcer = await startEnforcer(name.replaceAll(/[^a-z]+/g, '-'), agent.args, agent.env);
    });
    after(async () => {
      await enforcer?.agent.signal('SIGTERM');
      cri.close();
    });
    define({
      cri,
      get enforcer() {
        if (enforcer === undefined) throw new Error('the agent starts with the first test');
        return enforcer;
      },
      withPod: async (policy, spec, use) => {
        const pod = await runPod(cri, { ...spec, labels: { ...spec.labels, [POLICY_LABEL]: policy } });
        try {
          await use(pod);
        } finally {
          await removePod(cri, pod);
        }
      },
    });
  });
}
