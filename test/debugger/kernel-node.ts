import { openCgroupTree } from '@runtime-enforcer/agent/containers/cgroup-tree';
import type { BoundContainer } from '@runtime-enforcer/agent/containers/bound-container';
import {
  type ExampleContainer,
  startExampleContainer,
} from '@runtime-enforcer/agent/containers/container-example';
import { createContainerSlots } from '@runtime-enforcer/agent/containers/container-slots';
import { createKernelBinder } from '@runtime-enforcer/agent/containers/kernel-binder';
import { kernelReadings } from '@runtime-enforcer/agent/containers/kernel-bindings';
import { createGracePeriod } from '@runtime-enforcer/agent/kernel/grace-period';
import {
  EXAMPLE_FACTS,
  exampleLog,
  openExampleMaps,
} from '@runtime-enforcer/agent/kernel/kernel-maps-example';
import { loadNative } from '@runtime-enforcer/agent/kernel/native';
import type { KernelMaps } from '@runtime-enforcer/agent/kernel/maps';
import { createNodeSettings } from '@runtime-enforcer/agent/kernel/node-settings';
import { examplePolicy } from '@runtime-enforcer/agent/policies/policy-example';
import { createPolicyTable } from '@runtime-enforcer/agent/policies/policy-table';
import type { ObserverSources } from '@runtime-enforcer/agent/server/observer-server';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';

/** The policy that is loaded, in the namespace `shop`. */
export const POLICY_NAME = 'web';

/** A node with an agent's own binder over the kernel's own maps, and processes in cgroups for containers. */
export interface KernelNode {
  readonly maps: KernelMaps;
  /** What the agent tells, after `edit`. */
  readonly sources: Pick<ObserverSources, 'containers' | 'kernel'>;
  /** Changes what the agent believes, as a mistake of its own would; put back by the test. */
  edit: (containers: readonly BoundContainer[]) => readonly BoundContainer[];
  /** Starts a process in a cgroup of its own, that is not bound yet. */
  startContainer(): Promise<ExampleContainer>;
  /** Binds it as the container of a pod of the API server. */
  bind(example: ExampleContainer, pod: { readonly name: string; readonly uid: string }): Promise<void>;
  unbind(example: ExampleContainer): Promise<void>;
  /** Ends its process and removes its cgroup; it stays bound. */
  end(example: ExampleContainer): Promise<void>;
  container(example: ExampleContainer): BoundContainer;
  stop(): Promise<void>;
}

export async function kernelNode(): Promise<KernelNode> {
  const native = loadNative();
  const tree = await openCgroupTree(native);
  const { maps, close } = openExampleMaps(native);
  createNodeSettings(maps.settings).reset();
  const { log } = exampleLog();
  const countFailure = (): void => undefined;
  const table = await createPolicyTable({ native, maps, log, countFailure });
  await table.apply(examplePolicy(POLICY_NAME, { app: ['/bin/true'] }));
  table.complete();
  const binder = createKernelBinder({
    ...{ native, tree, table, log, countFailure, learning: true },
    slots: createContainerSlots({
      ...{ maps, countFailure, grace: createGracePeriod(native) },
      hostMountNamespace: EXAMPLE_FACTS.hostMountNamespace,
    }),
    settings: createNodeSettings(maps.settings),
    own: { podUid: undefined, namespace: undefined },
  });
  const started = new Set<ExampleContainer>();
  const node: KernelNode = {
    maps,
    edit: (containers) => containers,
    sources: {
      containers: () => node.edit([...binder.containers()]),
      kernel: kernelReadings(native, tree, maps, EXAMPLE_FACTS.hostMountNamespace),
    },
    async startContainer() {
      const example = await startExampleContainer(tree, { labels: { [POLICY_LABEL]: POLICY_NAME } });
      started.add(example);
      return example;
    },
    async bind({ pod, container }, { name, uid }) {
      await binder.bind({ ...pod, name, uid }, container);
    },
    async unbind({ container }) {
      await binder.unbind(container.id);
    },
    async end(example) {
      started.delete(example);
      await example.remove();
    },
    container({ container }) {
      const known = binder.container(container.id);
      if (known === undefined) throw new Error(`the agent does not know the container ${container.id}`);
      return known;
    },
    async stop() {
      for (const example of started) {
        await binder.unbind(example.container.id);
        await example.remove();
      }
      await table.settled();
      close();
    },
  };
  return node;
}
