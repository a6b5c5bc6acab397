import { NAMESPACE } from './installation.ts';
import { note } from './notes.ts';
import type { WholeCluster } from './whole-cluster.ts';

const TAIL_LINES = '40';
const OF_THE_PRODUCT = 'app.kubernetes.io/part-of=runtime-enforcer';
/** What an administrator would look at first. */
const QUESTIONS: readonly (readonly string[])[] = [
  ['get', 'pods', '-A', '-o', 'wide'],
  ['get', 'events', '-A', '--sort-by=.lastTimestamp'],
  ['logs', '-n', NAMESPACE, '-l', OF_THE_PRODUCT, '--prefix', `--tail=${TAIL_LINES}`],
  ['logs', '-n', NAMESPACE, '-l', OF_THE_PRODUCT, '--prefix', '--previous', `--tail=${TAIL_LINES}`],
];
const FILES_OF_THE_NODE = ['/var/log/kubelet.log', '/var/log/containerd.log'];

/** Writes what the cluster and the node say into the ring's log, for a test that has failed. */
export async function noteState({ user, node }: WholeCluster, test: string): Promise<void> {
  await note(`--- when this failed: ${test}`);
  for (const question of QUESTIONS) {
    const { stdout, stderr } = await user.kubectl(question).catch((error: unknown) => ({
      stdout: '',
      stderr: String(error),
    }));
    await note(`--- kubectl ${question.join(' ')}\n${stdout}${stderr}`);
  }
  for (const file of FILES_OF_THE_NODE) {
    const text = await node.read('tail', '-n', TAIL_LINES, file).catch(String);
    await note(`--- ${file}\n${text}`);
  }
  const kernel = await node.read('sh', '-c', `dmesg | tail -n ${TAIL_LINES}`).catch(String);
  await note(`--- the node's kernel\n${kernel}\n--- its first process\n${node.output.join('\n')}\n---`);
}
