import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { type PretendedKubelets, pretendKubelets } from '../cluster/pretended-kubelets.ts';
import { type ClusterContents, clusterContents } from './cluster-contents.ts';
import { type PluginRunner, pluginRunner } from './plugin-runner.ts';

/** A cluster with the product's resources, in which workloads get pods, and pods seem to run. */
export interface LivingCluster {
  readonly plane: ControlPlane;
  readonly kubelets: PretendedKubelets;
  readonly cluster: ClusterContents;
  readonly shell: PluginRunner;
  stop(): Promise<void>;
}

/** @param namespace of the contents, and of the shell */
export async function livingCluster(namespace: string, nodes: readonly string[]): Promise<LivingCluster> {
  const plane = await startControlPlane();
  try {
    const { client } = plane.admin;
    await installCustomResources(client);
    const cluster = await clusterContents(client, namespace);
    await plane.startControllers();
    const shell = await pluginRunner(plane, namespace);
    const kubelets = await pretendKubelets(client, nodes);
    return {
      ...{ plane, kubelets, cluster, shell },
      async stop() {
        await kubelets.stop();
        await shell.stop();
        await plane.stop();
      },
    };
  } catch (error) {
    await plane.stop();
    throw error;
  }
}
