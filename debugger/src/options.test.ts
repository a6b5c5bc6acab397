import { UsageError } from '@runtime-enforcer/kube/program-flags';
import { describe, expect, it } from 'vitest';
import { readDebuggerOptions } from './options.ts';

describe('readDebuggerOptions', () => {
  it('has the defaults that users know', () => {
    expect(readDebuggerOptions([], {})).toEqual({
      once: false,
      output: 'text',
      intervalMs: 10_000,
      grpcPort: 50_051,
      agentSelector: [{ key: 'app.kubernetes.io/component', operator: 'In', values: ['agent'] }],
      certificateDirectory: '/etc/runtime-enforcer/certs',
    });
  });

  it('takes what the environment says, and the command line before that', () => {
    const environment = {
      DEBUGGER_GRPC_PORT: '1',
      DEBUGGER_INTERVAL: '30s',
      DEBUGGER_AGENT_LABEL_SELECTOR: 'a=b',
      DEBUGGER_CERT_DIR: '/c',
      DEBUGGER_AGENT_SERVER_NAME: 'release-agent',
      POD_NAMESPACE: 'enforcer',
    };
    expect(readDebuggerOptions(['--interval=1m', '--once', '-o', 'json'], environment)).toMatchObject({
      ...{ once: true, output: 'json', intervalMs: 60_000, grpcPort: 1, podNamespace: 'enforcer' },
      ...{ agentSelector: [{ key: 'a', values: ['b'] }], certificateDirectory: '/c' },
      agentServerName: 'release-agent',
    });
    expect(readDebuggerOptions([], { DEBUGGER_GRPC_PORT: '' }).grpcPort).toBe(50_051);
  });

  it.each([
    [['--grpc-port=x'], {}, '--grpc-port "x": expected a port'],
    [[], { DEBUGGER_GRPC_PORT: 'x' }, 'DEBUGGER_GRPC_PORT: --grpc-port "x": expected a port'],
    [[], { DEBUGGER_INTERVAL: '10' }, 'DEBUGGER_INTERVAL: --interval "10": expected a time'],
    [
      [],
      { DEBUGGER_AGENT_LABEL_SELECTOR: 'a in' },
      'DEBUGGER_AGENT_LABEL_SELECTOR: --agent-label-selector "a in"',
    ],
    [
      ['--agent-label-selector='],
      {},
      '--agent-label-selector: expected labels that only the pods of agents have',
    ],
    [['-o', 'yaml'], {}, '--output "yaml" is not known; expected text or json'],
    [['--twice'], {}, '"--twice" is not a flag'],
  ])('refuses %j %j', (args, environment, message) => {
    expect(() => readDebuggerOptions(args, environment)).toThrow(message);
    expect(() => readDebuggerOptions(args, environment)).toThrow(UsageError);
  });
});
