import { chmod, readFile, writeFile } from 'node:fs/promises';
import { createServer as createProxy } from 'node:http';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { type ClusterContents, clusterContents, violation, violationStatus } from './cluster-contents.ts';
import { adminConfig, type PluginRunner, pluginRunner } from './plugin-runner.ts';

const NAMESPACE = 'manners';

/** Sets the clipboard; clears the screen (C1); turns the reading direction round. */
const HOSTILE = '\u001b]52;c;ZWNobw==\u0007\u009b2J\u202e';
const ACTIVE = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}]/u;

let plane: ControlPlane;
let shell: PluginRunner;
let cluster: ClusterContents;
beforeAll(async () => {
  plane = await startControlPlane();
  shell = await pluginRunner(plane, NAMESPACE);
});
afterAll(async () => {
  await shell.stop();
  await plane.stop();
});

describe('before the custom resources are there', () => {
  it.each(['policy list', 'proposal list', 'violations', 'promote --all', 'status'])(
    '%s says so',
    async (command) => {
      const { code, stderr } = await shell.plugin(command);
      expect(stderr).toContain('the server does not know this kind of object');
      expect(stderr).toContain('kubectl runtime-enforcer doctor');
      expect(code).toBe(1);
    },
  );

  it('doctor finds it', async () => {
    const { code, stdout } = await shell.plugin('doctor');
    expect(stdout).toContain('workloadpolicies: the custom resource is not installed');
    expect(code).toBe(3);
  });
});

describe('with the custom resources', () => {
  beforeAll(async () => {
    await installCustomResources(plane.admin.client);
    cluster = await clusterContents(plane.admin.client, NAMESPACE);
    await cluster.policy(
      'web',
      { app: ['/usr/bin/ls'] },
      {
        status: violationStatus([
          violation(3, '/usr/bin/ps'),
          violation(4, '/usr/bin/id', { containerName: 'x' }),
        ]),
      },
    );
  });

  describe('who may not, and where nobody answers', () => {
    const withUser = async (name: string, user: Readonly<Record<string, unknown>>, server = plane.url) => {
      const config = adminConfig(plane, NAMESPACE);
      const [{ cluster: known } = { cluster: undefined }] = config.clusters;
      return await shell.writeKubeconfig(name, {
        ...config,
        clusters: [{ name: 'test', cluster: { ...known, server } }],
        users: [{ name: 'admin', user }],
      });
    };

    it('a wrong token is told with the way to log in', async () => {
      const KUBECONFIG = await withUser('wrong', { token: 'wrong' });
      const { code, stderr } = await shell.plugin('policy list', { env: { KUBECONFIG } });
      expect(stderr).toContain('error: you must be logged in to the server (Unauthorized)');
      expect(code).toBe(1);
    });

    it('a reader reads, and is told what he may not', async () => {
      const account = await plane.serviceAccount(NAMESPACE, 'reader', {
        rules: [{ apiGroups: ['runtimeenforcer.kubewarden.io'], resources: ['*'], verbs: ['get', 'list'] }],
      });
      const KUBECONFIG = await withUser('reader', { tokenFile: account.tokenFile });
      const env = { KUBECONFIG };
      expect((await shell.plugin('policy list', { env })).stdout).toContain('web');
      const denied = await shell.plugin('policy protect web', { env });
      expect(denied.stderr).toMatch(
        /^Error from server \(Forbidden\): workloadpolicies.* cannot update resource/,
      );
      expect(denied.stderr).toContain('kubectl auth can-i');
      expect(denied.code).toBe(1);
      const seen = await shell.plugin('doctor', { env });
      expect(seen.stdout).toContain('it could not be looked at: ');
      expect(seen.code).toBe(3);
    });

    it('acts as another user and as a member of groups, as kubectl does', async () => {
      const denied = await shell.plugin('policy list --as nobody');
      expect(denied.stderr).toContain('User "nobody" cannot list resource');
      expect(
        (await shell.plugin('policy list --as nobody --as-group a --as-group system:masters')).code,
      ).toBe(0);
      expect((await shell.plugin('policy list --as-group a')).stderr).toContain('need --as');
    });

    it('asks a credential plugin, and tells it what client-go does', async () => {
      const account = await plane.serviceAccount(NAMESPACE, 'by-exec', {
        rules: [{ apiGroups: ['runtimeenforcer.kubewarden.io'], resources: ['*'], verbs: ['list'] }],
      });
      const token = await readFile(account.tokenFile, 'utf8');
      const program = join(shell.directory, 'credentials.sh');
      await writeFile(
        program,
        `#!/bin/sh\ncase "$KUBERNETES_EXEC_INFO" in *ExecCredential*) ;; *) exit 1 ;; esac\n` +
          `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"${token}"}}'\n`,
      );
      await chmod(program, 0o755);
      const exec = {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: './credentials.sh',
        interactiveMode: 'Never',
      };
      const KUBECONFIG = await withUser('exec', { exec });
      const { stdout, stderr } = await shell.plugin('policy list', { env: { KUBECONFIG } });
      expect(stderr).toBe('');
      expect(stdout).toContain('web');
    });

    it.each(['--proxy-url', 'proxy-url', 'HTTPS_PROXY'])(
      'goes through a proxy that %s names',
      async (how) => {
        const asked: string[] = [];
        const { port } = new URL(plane.url);
        const proxy = createProxy().on('connect', (request, socket, head) => {
          asked.push(request.url ?? '');
          const through = createConnection({ host: '127.0.0.1', port: Number(port) }, () => {
            socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
            through.write(head);
            through.pipe(socket).pipe(through);
          });
          for (const end of [through, socket]) end.on('error', () => end.destroy());
        });
        await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
        const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
        // A name that only the proxy can reach: to this machine nobody takes a proxy.
        const server = `https://api.test.invalid:${port}`;
        const config = adminConfig(plane, NAMESPACE);
        const clusters = config.clusters.map(({ name, cluster: known }) => ({
          name,
          cluster: {
            ...{ ...known, server, 'tls-server-name': 'localhost' },
            ...(how === 'proxy-url' && { 'proxy-url': address }),
          },
        }));
        const KUBECONFIG = await shell.writeKubeconfig('proxied', { ...config, clusters });
        const env = { KUBECONFIG, ...(how === 'HTTPS_PROXY' && { HTTPS_PROXY: address }) };
        try {
          const flag = how === '--proxy-url' ? ` ${how} ${address}` : '';
          const { code, stdout, stderr } = await shell.plugin(`policy list${flag}`, { env });
          expect(stderr).toBe('');
          expect(stdout).toContain('web');
          expect(code).toBe(0);
          expect(asked).toEqual([`api.test.invalid:${port}`]);
        } finally {
          proxy.close();
          proxy.closeAllConnections();
        }
      },
    );

    it('a server that is not there is told as such', async () => {
      const gone = await shell.plugin('policy list --server https://127.0.0.1:1');
      expect(gone.stderr).toContain('unable to connect to the server: ');
      expect(gone.code).toBe(1);
    });

    it.each([
      ['says nothing', ''],
      ['stops in its answer', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"kind":'],
    ])('a server that %s is told as such, in the time that it is given', async (_, said) => {
      const silent = createServer((socket) => {
        socket.on('error', () => undefined).write(said);
      });
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
      const { port } = silent.address() as AddressInfo;
      const server = `--server http://127.0.0.1:${port} --request-timeout 1s`;
      try {
        for (const command of ['policy list', 'policy protect web', 'violations -w', 'doctor', 'status']) {
          const slow = await shell.plugin(`${command} ${server}`, { limitMs: 10_000 });
          expect(slow.stderr, command).toContain('the server did not answer in time');
          expect(slow.code, command).toBe(1);
        }
        const completed = await shell.plugin(['__complete', 'policy', 'show', ...server.split(' '), ''], {
          limitMs: 10_000,
        });
        expect(completed.code).toBe(0);
      } finally {
        silent.close();
      }
    });

    it('a certificate that is not trusted is told as such', async () => {
      const { stderr } = await shell.plugin(`policy list --kubeconfig /dev/null --server ${plane.url}`);
      expect(stderr).toContain('its certificate is not trusted');
      expect(stderr).toContain('--certificate-authority');
    });

    it('no configuration, a broken one and a missing context are told as such', async () => {
      const none = await shell.plugin('policy list', { env: { KUBECONFIG: '/nonexistent' } });
      expect(none.stderr).toContain('no cluster is configured');
      const broken = join(shell.directory, 'broken');
      await writeFile(broken, 'clusters: [');
      const unread = await shell.plugin('policy list', { env: { KUBECONFIG: broken } });
      expect(unread.stderr).toMatch(/^error: kubeconfig ".*broken" is not one/);
      expect((await shell.plugin('policy list --context nope')).stderr).toContain(
        'context "nope" does not exist',
      );
      for (const { code, stderr } of [none, unread]) {
        expect(code).toBe(1);
        expect(stderr).not.toContain('    at ');
      }
    });
  });

  describe('what tenants write', () => {
    it('never acts on the terminal', async () => {
      const hostile = {
        podName: 'x',
        executablePath: `/tmp/${HOSTILE}`,
        parentName: HOSTILE,
        image: HOSTILE,
        containerName: `c${HOSTILE}`,
      };
      const metadata = { annotations: { note: HOSTILE } };
      await cluster.policy(
        'hostile',
        { app: [] },
        { metadata, status: violationStatus([violation(0, '', hostile)]) },
      );
      await cluster.pod('hostile', { labels: { [POLICY_LABEL]: 'web' }, metadata });
      const outputs = [
        'violations -o wide',
        'violations -o json',
        'violations -o yaml',
        'policy show hostile',
        'policy show hostile -o json',
        'policy show hostile -o yaml',
        'policy show hostile -o jsonpath={..executablePath}{..note}',
        'simulate hostile',
        'policy ack hostile 0 --reason x --dry-run=client',
        'explain hostile /x',
        'status --pods',
        'doctor',
        '__complete policy allow hostile app ',
      ];
      for (const command of outputs) {
        const { stdout, stderr } = await shell.plugin(command);
        expect(stdout, command).not.toMatch(ACTIVE);
        expect(stderr, command).not.toMatch(ACTIVE);
      }
      const data = JSON.parse((await shell.plugin('violations hostile -o json')).stdout) as readonly object[];
      expect(data[0]).toMatchObject({ executablePath: hostile.executablePath });
    });

    it('never acts on it through an argument that is told back', async () => {
      for (const args of [['policy', 'show', HOSTILE], [HOSTILE], ['policy', 'list', '-o', HOSTILE]]) {
        const { code, stderr } = await shell.plugin(args);
        expect(stderr).not.toMatch(ACTIVE);
        expect(code).toBe(2);
      }
    });
  });

  describe('completion through kubectl', () => {
    const complete = async (...words: readonly string[]) => {
      const { stdout } = await shell.kubectl(['__complete', 'runtime-enforcer', ...words]);
      const lines = stdout.trimEnd().split('\n');
      return { words: lines.slice(0, -1).map((line) => line.split('\t')[0]), directive: lines.at(-1) };
    };

    it('offers commands, names, containers, paths and ids', async () => {
      expect((await complete('')).words).toEqual(expect.arrayContaining(['promote', 'policy', 'doctor']));
      expect((await complete('policy', 'show', 'w')).words).toEqual(['web']);
      expect((await complete('policy', 'allow', 'web', '')).words).toEqual(['app']);
      expect((await complete('policy', 'allow', 'web', 'app', '')).words).toEqual(['/usr/bin/ps']);
      expect((await complete('policy', 'deny', 'web', 'app', '')).words).toEqual(['/usr/bin/ls']);
      expect((await complete('policy', 'ack', 'web', '')).words).toEqual(['3', '4']);
      expect((await complete('policy', 'list', '-n', 'man')).words).toEqual([NAMESPACE]);
      expect((await complete('--context', '')).words).toEqual(['test']);
      expect((await complete('policy', 'ack', 'web', '')).directive).toBe(':4');
    });

    it('offers nothing, quietly, where the cluster cannot be asked', async () => {
      const { stdout, code } = await shell.kubectl(['__complete', 'runtime-enforcer', 'policy', 'show', ''], {
        env: { KUBECONFIG: '/nonexistent' },
      });
      expect(code).toBe(0);
      expect(stdout).toContain('protection');
    });
  });

  it('lists ten thousand policies, whole', async () => {
    const path = `/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/many/workloadpolicies`;
    await clusterContents(plane.admin.client, 'many');
    const names = Array.from({ length: 10_000 }, (_, index) => `policy-${String(index).padStart(5, '0')}`);
    const writer = async (): Promise<void> => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const body = {
          apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
          kind: 'WorkloadPolicy',
          metadata: { name },
          spec: {
            mode: 'monitor',
            rulesByContainer: { app: { executables: { allowed: ['/bin/a', '/bin/b'] } } },
          },
        };
        await plane.admin.client.request({ method: 'POST', path, body });
      }
    };
    await Promise.all(Array.from({ length: 16 }, writer));
    const { code, stdout } = await shell.plugin('policy list -n many --no-headers');
    expect(code).toBe(0);
    expect(stdout.trimEnd().split('\n')).toHaveLength(10_000);
    expect(stdout).toContain('policy-09999');
  }, 180_000);

  it('tells the requests where that is asked, and never colours a pipe', async () => {
    const { stdout, stderr } = await shell.plugin('policy list -v=6', { env: { FORCE_COLOR: '' } });
    expect(stderr).toMatch(/^GET \/apis\/runtimeenforcer.*\/workloadpolicies \(\d+ ms\)\n$/);
    expect(stdout).not.toContain('\u001b');
    expect(await cluster.get(WORKLOAD_POLICIES, 'web')).toBeDefined();
  });
});
