import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { API_VERSION, POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { collectionPath, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { clusterContents, PODS, violation, violationStatus } from '../kubectl/cluster-contents.ts';
import { type PluginRunner, pluginRunner } from '../kubectl/plugin-runner.ts';

const NAMESPACE = 'hostile';
/** Sets the clipboard; clears the screen (C1); turns the reading direction round; begins a new line of its own. */
const HOSTILE = '\u001b]52;c;ZWNobw==\u0007\u009b2J\u202e\r\u2028';
/** What a terminal acts on, besides the ends of lines that are the plugin's own. */
const ACTIVE = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u;
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };

let plane: ControlPlane;
let shell: PluginRunner;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  shell = await pluginRunner(plane, NAMESPACE);
  await fill();
  await writeFiles();
});
afterAll(async () => {
  await shell.stop();
  await plane.stop();
});

/** Fills every field that a tenant, a node or an agent can have a text in, and the API server takes. */
async function fill(): Promise<void> {
  const { client } = plane.admin;
  const cluster = await clusterContents(client, NAMESPACE);
  const metadata = { annotations: { note: HOSTILE } };
  const hostile = {
    ...{ podName: HOSTILE, executablePath: `/tmp/${HOSTILE}`, parentName: HOSTILE, image: HOSTILE },
    ...{ containerName: `c${HOSTILE}`, nodeName: HOSTILE },
  };
  const one = violation(0, '', hostile);
  const issue = { code: 'Failed', message: HOSTILE };
  const status = {
    ...violationStatus([one]),
    ...{ phase: 'Failed', failedNodes: 1, nodesWithIssues: { 'node-1': issue } },
    acknowledgedViolations: [
      {
        violation: violation(1, '', hostile),
        reason: HOSTILE,
        acknowledgedAt: '2026-01-02T00:00:00Z',
      },
    ],
  };
  await cluster.policy('web', { app: ['/app/server'] }, { metadata, status });
  const observation = {
    ...{ containerName: 'app', executablePath: '/bin/sh', count: 1, pods: ['web-0'], nodes: ['node-1'] },
    ...{ firstSeen: '2026-01-01T00:00:00Z', lastSeen: '2026-01-02T00:00:00Z' },
    origins: ['exec'],
  };
  const failed = {
    ...{ type: 'PromotionFailed', status: 'True', reason: 'Refused', message: HOSTILE },
    lastTransitionTime: '2026-01-02T00:00:00Z',
  };
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: HOSTILE, name: HOSTILE, uid: 'u' }];
  await cluster.proposal(
    'web',
    { app: ['/app/server', '/bin/sh'] },
    {
      metadata: { ...metadata, ownerReferences },
      status: { observations: [observation], conditions: [failed] },
    },
  );
  await cluster.pod('web-0', {
    labels: { [POLICY_LABEL]: 'web' },
    metadata: { annotations: { note: HOSTILE, 'kubectl.kubernetes.io/default-container': HOSTILE } },
  });
  const waiting = { name: 'app', image: HOSTILE, state: { waiting: { reason: HOSTILE, message: HOSTILE } } };
  const patch = { patchType: 'application/merge-patch+json', method: 'PATCH' } as const;
  const podStatus = {
    phase: 'Pending',
    containerStatuses: [{ ...waiting, imageID: '', ready: false, restartCount: 0 }],
  };
  await client.request({
    ...{ ...patch, body: { status: podStatus } },
    path: objectPath({ resource: PODS, namespace: NAMESPACE, name: 'web-0', subresource: 'status' }),
  });
  await client.request({
    ...{ method: 'POST', path: collectionPath(NODES) },
    body: { metadata: { name: 'node-1', ...metadata } },
  });
  await client.request({
    ...{
      ...patch,
      body: { status: { nodeInfo: { containerRuntimeVersion: `containerd://1.7.0${HOSTILE}` } } },
    },
    path: objectPath({ resource: NODES, name: 'node-1', subresource: 'status' }),
  });
  // It says that it is an agent.
  await cluster.pod('agent', {
    labels: {
      'app.kubernetes.io/name': 'runtime-enforcer',
      'app.kubernetes.io/component': 'agent',
    },
    metadata,
  });
  await client.request({
    ...{ ...patch, body: { status: podStatus } },
    path: objectPath({ resource: PODS, namespace: NAMESPACE, name: 'agent', subresource: 'status' }),
  });
}

/** Files that somebody was given. */
async function writeFiles(): Promise<void> {
  const directory = join(shell.directory, 'given');
  await mkdir(directory);
  const execs = [{ container: `c${HOSTILE}`, path: '/x', expect: 'deny' }];
  const test = { apiVersion: API_VERSION, kind: 'PolicyTest', metadata: { name: HOSTILE } };
  const rules = { [`c${HOSTILE}`]: { executables: { allowed: [`/tmp/${HOSTILE}`] } } };
  const policy = {
    ...{ apiVersion: API_VERSION, kind: 'WorkloadPolicy', metadata: { name: 'given' } },
    spec: { mode: 'protect', rulesByContainer: rules },
  };
  const files = {
    'policy.yaml': JSON.stringify(policy),
    'test.yaml': JSON.stringify({ ...test, policy: 'policy.yaml', execs }),
    [`odd\u001b[2J.yaml`]: JSON.stringify({ ...test, policy: HOSTILE, execs }),
    'recorded.jsonl': `${JSON.stringify({ containerName: HOSTILE, executablePath: HOSTILE })}\n`,
    'bytes.yaml': Buffer.from([0x6e, 0x61, 0x6d, 0x65, 0x3a, 0x20, 0xff, 0x9b, 0x0a]),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
}

const COMMANDS = [
  ...['table', 'wide', 'json', 'yaml', 'name', 'jsonpath={..note}{..message}'].flatMap((format) => [
    `policy list -o ${format}`,
    `proposal list -o ${format}`,
  ]),
  ...['table', 'json', 'yaml', 'jsonpath=text {..executablePath}{..reason}'].flatMap((format) => [
    `policy show web -o ${format}`,
    `policy show protection -o ${format}`,
    `proposal show web -o ${format}`,
    `proposal review web -o ${format}`,
    `violations -o ${format}`,
    `violations --acknowledged -o ${format}`,
    `explain web-0 /x -o ${format}`,
    `simulate web -o ${format}`,
    `simulate web --recorded given/recorded.jsonl -o ${format}`,
    `status --pods -o ${format}`,
    `status -o ${format}`,
    `doctor -o ${format}`,
    `version -o ${format}`,
  ]),
  ...['violations -o wide', 'status --pods -o wide', 'proposal diff web', 'policy diff web'],
  ...['promote web --dry-run=client', 'promote web --timeout 1s'],
  ...['policy ack web 0 --reason x --dry-run=client', 'policy allow web --from-violations --dry-run=client'],
  ...['policy allow web c /x', 'explain web-0 /x -c nope'],
  ...[
    'simulate -f given/policy.yaml --recorded given/recorded.jsonl',
    'policy diff web -f given/policy.yaml',
  ],
  ...['policy create -f given/policy.yaml', 'policy create -f given/bytes.yaml', 'policy create -f given'],
  ...['test given', 'test given/test.yaml', 'test given/policy.yaml', 'test given/test.yaml -o junit'],
  ...['policy show ', 'policy allow web ', 'policy allow web app ', 'policy ack web ', 'explain '].map(
    (words) => `__complete ${words}`,
  ),
  ...['proposal show ', 'explain web-0 -c ', 'policy list -n '].map((words) => `__complete ${words}`),
];

describe('what others write', () => {
  it.each(COMMANDS)('never acts on the terminal: %s', async (command) => {
    const { stdout, stderr, code } = await shell.plugin(command, { cwd: shell.directory });
    // Completion separates a word and what it is by a tab.
    const shown = command.startsWith('__complete') ? stdout.replaceAll('\t', '') : stdout;
    expect(shown).not.toMatch(ACTIVE);
    expect(stderr).not.toMatch(ACTIVE);
    expect(stdout + stderr, 'it says something').not.toBe('');
    expect(stderr).not.toContain('    at ');
    expect([0, 1, 2, 3]).toContain(code);
  });

  it('is data all the same', async () => {
    const { stdout } = await shell.plugin('violations web -o json');
    expect(JSON.parse(stdout)).toMatchObject([{ executablePath: `/tmp/${HOSTILE}`, podName: HOSTILE }]);
  });

  it('never acts on it through an argument that is told back', async () => {
    for (const args of [
      ['policy', 'show', HOSTILE],
      [HOSTILE],
      ['policy', 'list', '-o', HOSTILE],
      ['policy', 'list', '-n', HOSTILE],
      ['policy', 'list', '-l', HOSTILE],
      ['policy', 'allow', 'web', 'app', `/${HOSTILE}`, '--dry-run=client', '--server', HOSTILE],
      ['bind', `deployment/${HOSTILE}`, 'web'],
      ['simulate', 'web', '--recorded', HOSTILE],
      ['policy', 'create', '-f', HOSTILE],
      ['test', HOSTILE],
      ['violations', '--since', HOSTILE],
      ['policy', 'list', '--context', HOSTILE],
      ['policy', 'list', '--kubeconfig', HOSTILE],
    ]) {
      const { code, stdout, stderr } = await shell.plugin(args);
      expect(stderr, args.join(' ')).not.toMatch(ACTIVE);
      expect(stdout, args.join(' ')).not.toMatch(ACTIVE);
      expect([1, 2]).toContain(code);
    }
  });

  it.each([
    ['a status', 403, JSON.stringify({ kind: 'Status', reason: HOSTILE, message: HOSTILE })],
    ['no JSON', 200, HOSTILE],
    ['a page', 502, `<html>${HOSTILE.repeat(2_000)}</html>`],
    [
      'something else',
      200,
      JSON.stringify({ kind: HOSTILE, items: [{ metadata: { name: HOSTILE } }, 7, null] }),
    ],
    ['an endless list', 200, JSON.stringify({ kind: 'List', metadata: { continue: 'x' }, items: [] })],
  ])('never acts on it through a server that answers with %s', async (_, status, text) => {
    const server = createServer((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      for (const command of [
        'policy list',
        'status',
        'doctor',
        'version',
        'policy protect web',
        'violations',
      ]) {
        const line = `${command} --server http://127.0.0.1:${port} --request-timeout 5s`;
        const { code, stdout, stderr } = await shell.plugin(line);
        expect(stdout + stderr, command).not.toMatch(ACTIVE);
        expect(stderr, command).not.toContain('    at ');
        expect([1, 3], command).toContain(code);
      }
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});
