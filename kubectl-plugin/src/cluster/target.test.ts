import { describe, expect, it } from 'vitest';
import { PluginError, UsageError } from '../plugin-error.ts';
import type { KubeFlags } from './kube-flags.ts';
import type { Kubeconfig } from './kubeconfig.ts';
import { targetOf } from './target.ts';

const CONFIG: Kubeconfig = {
  files: ['config'],
  currentContext: 'here',
  contexts: [
    { name: 'here', cluster: 'one', user: 'anna', namespace: 'shop' },
    { name: 'there', cluster: 'two', user: 'ben' },
  ],
  clusters: [
    { name: 'one', server: 'https://one:6443', caData: 'Q0E=', skipTLSVerify: false },
    { name: 'two', server: 'http://two:8001', skipTLSVerify: false },
  ],
  users: [
    { user: { name: 'anna', certData: 'Qw==', keyData: 'Sw==' } },
    { user: { name: 'ben', token: 't' }, impersonation: { user: 'carl', groups: ['g'], extra: new Map() } },
  ],
};

const target = (flags: KubeFlags, config = CONFIG) => targetOf(config, flags);

describe('targetOf', () => {
  it('takes the current context, or the one that is named', () => {
    expect(target({})).toMatchObject({
      contextName: 'here',
      namespace: 'shop',
      cluster: { server: 'https://one:6443', caData: 'Q0E=', skipTLSVerify: false },
      user: { name: 'anna', certData: 'Qw==' },
    });
    expect(target({ context: 'there' })).toMatchObject({
      namespace: 'default',
      cluster: { server: 'http://two:8001', skipTLSVerify: true },
      user: { token: 't' },
      impersonation: { user: 'carl', groups: ['g'] },
    });
  });

  it('lets each flag win over the file', () => {
    expect(
      target({
        namespace: 'n',
        server: 'https://other:1',
        cluster: 'two',
        user: 'ben',
        certificateAuthority: '/ca',
        tlsServerName: 'name',
        insecureSkipTlsVerify: true,
        proxyUrl: 'http://proxy:1',
        as: 'dora',
        asUid: 'u',
        asGroup: ['x', 'y'],
        asUserExtra: ['k=1', 'k=2'],
      }),
    ).toMatchObject({
      namespace: 'n',
      cluster: {
        server: 'https://other:1',
        caFile: '/ca',
        caData: '',
        tlsServerName: 'name',
        skipTLSVerify: true,
        proxyUrl: 'http://proxy:1',
      },
      user: { token: 't' },
      impersonation: { user: 'dora', uid: 'u', groups: ['x', 'y'], extra: new Map([['k', ['1', '2']]]) },
    });
  });

  it('takes a token for all that the user has otherwise', () => {
    const { user } = target({ token: 'mine' });
    expect(user).toEqual({ name: 'anna', token: 'mine' });
  });

  it.each<[string, KubeFlags, Kubeconfig, string]>([
    [
      'no file',
      {},
      { ...CONFIG, files: [], contexts: [], clusters: [], currentContext: undefined },
      'there is no kubeconfig',
    ],
    ['no current context', {}, { ...CONFIG, currentContext: undefined }, 'has no current context'],
    [
      'a current context that is not there',
      {},
      { ...CONFIG, currentContext: 'gone' },
      '"gone" of "config" names no cluster',
    ],
    ['another context', { context: 'gone' }, CONFIG, 'context "gone" does not exist'],
    ['another cluster', { cluster: 'gone' }, CONFIG, 'cluster "gone" does not exist'],
    ['another user', { user: 'gone' }, CONFIG, 'user "gone" does not exist'],
    [
      'an address that is none',
      { server: 'host:6443' },
      CONFIG,
      '"host:6443" is not the address of a server',
    ],
  ])('says what is wrong with %s', (_, flags, config, message) => {
    const failure = () => target(flags, config);
    expect(failure).toThrow(PluginError);
    expect(failure).toThrow(message);
  });

  it.each<[KubeFlags, string]>([
    [{ namespace: '../x' }, 'is not a name'],
    [{ asGroup: ['g'] }, 'need --as'],
    [{ as: 'a', asUserExtra: ['x'] }, 'not of the form key=value'],
  ])('refuses %j as a command line', (flags, message) => {
    expect(() => target(flags)).toThrow(UsageError);
    expect(() => target(flags)).toThrow(message);
  });
});
