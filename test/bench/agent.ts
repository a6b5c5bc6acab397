import { rm } from 'node:fs/promises';
import { release } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { startBenchCluster, type BenchCluster } from './bench-cluster.ts';
import { startClusterHostAgent, type ClusterHostAgent } from './cluster-host-agent.ts';
import { EVENTS_PER_SECOND, measureStarts, tellIfBusy } from './container-starts.ts';
import { startEchoControl } from './echo-control.ts';
import { median, percentile, type Measured } from './figure.ts';
import { bundleHostAgent, inTemporaryDirectory } from './host-agent.ts';
import { createHostContainers, type HostContainer } from './host-containers.ts';
import { EVENTS_VARIABLE } from './host-kernel-side.ts';
import { createMemoryCgroup } from './memory-cgroup.ts';
import { followLoadedVersions, measureEdits } from './policy-edits.ts';

const SOME_POLICIES = 1_000;
const MANY_POLICIES = 10_000;
/** Holds the many: what operators of such clusters are told to give. */
const MANY_CAPACITY = 1_048_576;
const CONTAINERS = 500;
/** Run all the time while execs are learned; the records are about them. Half of them have no policy. */
const RUNNING = 32;
/** Are started and removed over and over meanwhile. */
const STARTING = 16;
/** Until the heap has been tidied. */
const IDLE_MS = 20_000;
const COUNTED_MS = 60_000;
const BYTES_PER_MIB = 1024 * 1024;

/** Method and plural of a request such as `GET /api/v1/namespaces/shop/pods/web?watch=true`. */
const RESOURCE = /^(\S+) \/(?:api|apis\/[^/]+)\/[^/]+\/(?:namespaces\/[^/]+\/)?([^/?]+)/;

type Report = (figure: string, value: number, unit: string) => void;

/** What the parts of this bench share. */
interface Bench {
  readonly cluster: BenchCluster;
  /** The agent's program. */
  readonly bundle: string;
  /** Where to put a Node of its own. */
  readonly node: string;
  readonly report: Report;
}

/** The agent as it is deployed, beside a real API server; see docs/performance.md. */
export async function benchAgent(report: (measured: Measured) => void): Promise<void> {
  await inTemporaryDirectory(async (directory) => {
    const cluster = await startBenchCluster();
    try {
      const bundle = await bundleHostAgent(join(directory, 'bundle'));
      const node = join(directory, 'node');
      const bench: Bench = {
        ...{ cluster, bundle, node },
        report: (name, value, unit) => report({ figure: `agent.${name}`, value, unit, kernel: release() }),
      };
      await benchIdle(bench);
      await cluster.createPolicies(0, SOME_POLICIES);
      await benchEdits(bench);
      await benchLearning(bench);
      await cluster.createPolicies(SOME_POLICIES, MANY_POLICIES);
      await benchManyPolicies(bench);
    } finally {
      await cluster.stop();
    }
  });
}

async function benchIdle(bench: Bench): Promise<void> {
  await withCharged(bench, { policies: 0, way: 'counted' }, async (agent, tellMemory) => {
    const { requests } = bench.cluster;
    const before = requests.length;
    await delay(IDLE_MS);
    await tellMemory('idle');
    await delay(COUNTED_MS - IDLE_MS);
    tellRequests(bench, 'idle', requests.slice(before));
    await agent.readAll();
  });
}

async function benchEdits(bench: Bench): Promise<void> {
  const policies = Array.from({ length: CONTAINERS }, (_, index) => `policy-${index}`);
  await withContainers(policies, async (running) => {
    const loaded = followLoadedVersions();
    const options = { policies: SOME_POLICIES, way: 'direct', running, onLine: loaded.onLine } as const;
    await withCharged(bench, options, async (agent, tellMemory) => {
      const bound = await agent.metric('runtime_enforcer_containers{state="enforced"}');
      if (bound !== CONTAINERS) throw new Error(`${bound} of ${CONTAINERS} containers are bound`);
      await delay(IDLE_MS);
      await tellMemory('1000_policies');
      const times = await measureEdits(bench.cluster, loaded, SOME_POLICIES);
      bench.report('edit_to_enforced_p50_ms', median(times), 'ms');
      bench.report('edit_to_enforced_p99_ms', percentile(times, 99), 'ms');
    });
  });
}

async function benchLearning(bench: Bench): Promise<void> {
  const policies = Array.from({ length: RUNNING + STARTING }, (_, index) =>
    index % 2 === 0 ? `policy-${index}` : undefined,
  );
  await withContainers(policies, async (made) => {
    const containers: HostContainer[] = [];
    for (const each of made) containers.push(await bench.cluster.deploy(each));
    await inTemporaryDirectory(async (directory) => {
      const { requests } = bench.cluster;
      const agent = await startClusterHostAgent({
        ...{ directory, command: [process.execPath, bench.bundle], policies: SOME_POLICIES },
        running: containers.slice(0, RUNNING),
        access: await bench.cluster.access(directory, 'counted'),
        env: { [EVENTS_VARIABLE]: String(EVENTS_PER_SECOND) },
      });
      // Within this minute the workloads are looked up, and their proposals made and filled.
      const before = requests.length;
      const control = await startEchoControl(directory);
      try {
        await delay(COUNTED_MS);
        tellRequests(bench, 'learning', requests.slice(before));
        await tellLearned(bench.cluster);
        // So that the process which reads has started: that takes more of a processor than reading does.
        await agent.readAll();
        const reading: Promise<number>[] = [];
        const onRun = (): void => {
          reading.push(agent.readAll());
        };
        const { p50, p99, echoP99 } = await measureStarts(agent, control, containers.slice(RUNNING), onRun);
        for (const read of await Promise.all(reading))
          if (read !== SOME_POLICIES)
            throw new Error(`a controller was told ${read} of ${SOME_POLICIES} policies`);
        tellIfBusy(echoP99);
        bench.report('nri_start_p50_ms', p50, 'ms');
        bench.report('nri_start_p99_ms', p99, 'ms');
      } finally {
        await control.stop();
        await agent.stop();
      }
    });
  });
}

async function benchManyPolicies(bench: Bench): Promise<void> {
  const args = ['--capacity', String(MANY_CAPACITY)];
  const options = { policies: MANY_POLICIES, way: 'direct', args } as const;
  await withCharged(bench, options, async ({ readySeconds }, tellMemory) => {
    bench.report('ready_10000_policies_s', readySeconds, 's');
    await delay(IDLE_MS);
    await tellMemory('10000_policies');
  });
}

/**
 * Runs an agent in a cgroup of its own. Its Node is one that nobody has read before, as in a fresh container: what
 * another cgroup has read would be charged there.
 */
async function withCharged(
  { cluster, bundle, node, report }: Bench,
  options: Omit<Parameters<typeof startClusterHostAgent>[0], 'directory' | 'command' | 'access'> & {
    readonly way: 'counted' | 'direct';
  },
  action: (agent: ClusterHostAgent, tellMemory: (name: string) => Promise<void>) => Promise<void>,
): Promise<void> {
  await copyUnread(process.execPath, node);
  await inTemporaryDirectory(async (directory) => {
    const cgroup = await createMemoryCgroup();
    try {
      const agent = await startClusterHostAgent({
        ...{ ...options, directory, command: [...cgroup.enter, node, bundle] },
        access: await cluster.access(directory, options.way),
      });
      try {
        await action(agent, async (name) => {
          report(`rss_${name}_mib`, (await agent.residentBytes()) / BYTES_PER_MIB, 'MiB');
          report(`cgroup_${name}_mib`, (await cgroup.chargedBytes()) / BYTES_PER_MIB, 'MiB');
        });
      } finally {
        await agent.stop();
      }
    } finally {
      await cgroup.remove();
    }
  });
}

/** Copies a file and lets the kernel forget what it has in memory of the copy. */
async function copyUnread(from: string, to: string): Promise<void> {
  await rm(to, { force: true });
  await runHostCommand(['install', '--mode=755', from, to]);
  await runHostCommand(['dd', `of=${to}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0']);
}

async function withContainers(
  policies: readonly (string | undefined)[],
  action: (containers: readonly HostContainer[]) => Promise<void>,
): Promise<void> {
  const made = await createHostContainers(policies);
  try {
    await action(made.containers);
  } finally {
    await made.remove();
  }
}

/** @param requests of one minute, each a method and a path */
function tellRequests({ report }: Bench, when: string, requests: readonly string[]): void {
  const kinds = new Map<string, number>();
  for (const request of requests) {
    const [, method = '', plural = ''] = RESOURCE.exec(request) ?? [];
    const kind = `${method} ${plural}`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  printProgress(`requests: ${Array.from(kinds, ([kind, count]) => `${count} ${kind}`).join(', ')}`);
  report(`requests_per_minute_${when}`, requests.length, '1/min');
}

/** Throws an Error if not every workload without a policy has its proposal. */
async function tellLearned({ plane }: BenchCluster): Promise<void> {
  const path = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/workloadpolicyproposals';
  const { items } = (await plane.admin.client.request({ path })) as { readonly items: readonly object[] };
  if (items.length < RUNNING / 2) throw new Error(`only ${items.length} workloads have a proposal`);
  printProgress(`${items.length} workloads have a proposal`);
}
