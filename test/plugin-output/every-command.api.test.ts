import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PlayedNode, playedNode } from '../kubectl/played-node.ts';
import { checkSession, documentedCommands, playSession } from '../kubectl/recorded-session.ts';

const NAMESPACE = 'shop';
/** They print a program, the help of kubectl's own flags, and what is right or wrong with the very cluster. */
const NOT_SHOWN = ['completion', 'options', 'status', 'doctor'];
const POLICY = `apiVersion: runtimeenforcer.kubewarden.io/v1alpha1
kind: WorkloadPolicy
metadata:
  name: web
spec:
  mode: protect
  rulesByContainer:
    app:
      executables:
        allowed:
          - /app/server
          - /usr/bin/ls
`;
const POLICY_TEST = `apiVersion: runtimeenforcer.kubewarden.io/v1alpha1
kind: PolicyTest
metadata:
  name: web
policy: web.yaml
execs:
  - container: app
    path: /app/server
    expect: allow
  - container: app
    path: /bin/sh
    expect: deny
`;

let node: PlayedNode;
beforeAll(async () => {
  node = await playedNode(NAMESPACE);
});
afterAll(async () => await node.stop());

describe('the commands besides the quick start', () => {
  it('show what the document says', { timeout: 180_000 }, async () => {
    const { shell, learned, loaded, violated } = node;
    const directory = join(shell.directory, 'policies');
    await mkdir(directory);
    await writeFile(join(directory, 'web.yaml'), POLICY);
    await writeFile(join(directory, 'web-test.yaml'), POLICY_TEST);
    const session = playSession(shell, directory);
    const { enforcer } = session;

    await enforcer('test .');
    await enforcer('policy create -f web.yaml');
    await loaded('web');
    await enforcer('policy list');
    await enforcer('policy create -f web.yaml', 1);
    await learned('web', ['/app/server', '/usr/bin/ls', '/bin/sh']);
    await enforcer('proposal show deploy-web');
    await enforcer('proposal review deploy-web', 3);
    await enforcer('proposal diff deploy-web web', 3);
    await enforcer('proposal promote deploy-web --dry-run');
    await enforcer('bind deployment/web web --dry-run');
    await enforcer('bind deployment/web web --yes --wait');
    await violated('web', 'web', '/usr/bin/id', 'protect');
    await enforcer('violations -o wide');
    await enforcer('policy show web');
    await enforcer('policy monitor web');
    await enforcer('policy allow web --from-violations --dry-run');
    await enforcer('policy deny web app /usr/bin/ls');
    await enforcer('policy diff web -f web.yaml', 3);
    await enforcer('policy protect nothing', 1);
    await enforcer('version');
    await checkSession('every command', session, 'plugin-output');
  });

  it('are with those of the quick start all that there are', async () => {
    const { listed, shown } = await documentedCommands();
    expect(listed.length).toBeGreaterThan(20);
    for (const command of listed) {
      if (NOT_SHOWN.includes(command)) continue;
      expect(
        shown.some((line) => `${line} `.startsWith(`${command} `)),
        `docs/plugin.md shows no output of ${command}`,
      ).toBe(true);
    }
  });
});
