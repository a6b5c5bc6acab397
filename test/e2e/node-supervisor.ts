import { execFile, execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { HOST_ADDRESS, NETWORK_PREFIX_LENGTH, NODE_ADDRESS, POD_NETWORK } from './cluster-network.ts';
import {
  CONTAINERD_DIRECTORY,
  CONTROL_PORT,
  KUBECONFIG,
  KUBELET,
  KUBELET_CONFIG,
  NODE_NAME,
  STATIC_PODS,
} from './node-files.ts';

const RESTART_MS = 1_000;
const DEBIAN_CONTAINERD = '/usr/bin/containerd';
/** That of every guest. */
const COMMON_CONTAINERD_CONFIG = '/run/guest/containerd.toml';
const CONTAINERD_CONFIG = '/run/containerd.toml';
/** Refuses containers whose pods require a plugin that is not there. */
const VALIDATOR = "\n[plugins.'io.containerd.nri.v1.nri'.default_validator]\n  enable = true\n";
const COMMAND_LIMIT_MS = 120_000;
const OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024;
const MODULES = [
  'virtio_net',
  'bridge',
  'br_netfilter',
  'veth',
  'nf_conntrack',
  'nft_compat',
  'nft_chain_nat',
];
const SETTINGS = {
  'net/ipv4/ip_forward': '1',
  'net/bridge/bridge-nf-call-iptables': '1',
  'vm/overcommit_memory': '1',
  'kernel/panic': '10',
  'fs/inotify/max_user_instances': '1024',
};
/** containerd takes it up when it appears. */
const CNI_CONFIG = '/etc/cni/net.d/10-bridge.conflist';
const POD_NETWORK_PLUGINS = {
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      hairpinMode: true,
      ipam: { type: 'host-local', ranges: [[{ subnet: POD_NETWORK }]], routes: [{ dst: '0.0.0.0/0' }] },
    },
  ],
};

/** What the node was asked to run, and how that ended. */
export interface NodeCommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** In the guest: makes it a node of the cluster, and runs what the host asks for until that lets it go. */
async function superviseNode(): Promise<void> {
  for (const name of MODULES) execFileSync('modprobe', [name]);
  for (const [name, value] of Object.entries(SETTINGS)) await writeFile(`/proc/sys/${name}`, value);
  const ip = (...args: readonly string[]): void => void execFileSync('ip', args);
  ip('addr', 'add', `${NODE_ADDRESS}/${NETWORK_PREFIX_LENGTH}`, 'dev', 'eth0');
  ip('link', 'set', 'eth0', 'up');
  ip('route', 'add', 'default', 'via', HOST_ADDRESS);
  await writeFile('/etc/resolv.conf', `nameserver ${HOST_ADDRESS}\n`);
  await mkdir('/etc/cni/net.d', { recursive: true });
  await writeFile(CNI_CONFIG, JSON.stringify(POD_NETWORK_PLUGINS));
  await mkdir(STATIC_PODS, { recursive: true });
  await keepContainerd();
  keepKubelet();
  const released = serveHost();
  console.log('the node is up');
  await released;
}

/** Debian's containerd, or the one that the host brought, which has a validator of plugins. */
async function keepContainerd(): Promise<void> {
  const isNewer = existsSync(CONTAINERD_DIRECTORY);
  const config = await readFile(COMMON_CONTAINERD_CONFIG, 'utf8');
  await writeFile(CONTAINERD_CONFIG, isNewer ? config + VALIDATOR : config);
  // It finds its shim in PATH.
  if (isNewer) process.env['PATH'] = `${CONTAINERD_DIRECTORY}:${process.env['PATH'] ?? ''}`;
  keep('containerd', isNewer ? 'containerd' : DEBIAN_CONTAINERD, ['--config', CONTAINERD_CONFIG]);
}

function keepKubelet(): void {
  keep('kubelet', KUBELET, [
    `--config=${KUBELET_CONFIG}`,
    `--kubeconfig=${KUBECONFIG}`,
    `--hostname-override=${NODE_NAME}`,
    `--node-ip=${NODE_ADDRESS}`,
  ]);
}

/** Starts a program with a log of its name, and again whenever it ends. */
function keep(name: string, program: string, args: readonly string[]): void {
  const log = openSync(`/var/log/${name}.log`, 'a');
  const child = spawn(program, args, { stdio: ['ignore', log, log] });
  console.log(`${name} is process ${child.pid ?? 0}`);
  child.once('exit', (code, signal) => {
    console.log(`${name} ended with ${signal ?? `code ${code ?? 0}`}`);
    closeSync(log);
    setTimeout(() => keep(name, program, args), RESTART_MS);
  });
}

/** Runs commands that come as JSON arrays, each with its result as the answer. Resolves at `/release`. */
async function serveHost(): Promise<void> {
  const released = Promise.withResolvers<undefined>();
  const server = createServer((request, response) => {
    if (request.url === '/release') {
      response.end('{}');
      released.resolve(undefined);
      return;
    }
    void bodyOf(request).then(
      async (text) => response.end(JSON.stringify(await runCommand(JSON.parse(text) as string[]))),
      () => response.destroy(),
    );
  });
  server.listen(CONTROL_PORT, NODE_ADDRESS);
  await released.promise;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks = (await request.toArray()) as Buffer[];
  return Buffer.concat(chunks).toString();
}

async function runCommand([program = 'true', ...args]: readonly string[]): Promise<NodeCommandResult> {
  const options = { timeout: COMMAND_LIMIT_MS, maxBuffer: OUTPUT_LIMIT_BYTES };
  return await new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, stdout, stderr: error === null || stderr !== '' ? stderr : error.message });
    });
  });
}

await superviseNode();
process.exit(0);
