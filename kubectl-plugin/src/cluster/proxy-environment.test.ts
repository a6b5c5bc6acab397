import { describe, expect, it } from 'vitest';
import { proxyFromEnvironment } from './proxy-environment.ts';

const PROXY = 'http://proxy.example:3128';
const through = (server: string, noProxy = ''): string | undefined =>
  proxyFromEnvironment(server, { HTTPS_PROXY: PROXY, NO_PROXY: noProxy });

describe('proxyFromEnvironment', () => {
  it('takes the proxy of the scheme, in capitals or not, with or without a scheme of its own', () => {
    expect(through('https://api.example:6443')).toBe(PROXY);
    expect(through('http://api.example')).toBeUndefined();
    expect(proxyFromEnvironment('http://api.example', { http_proxy: 'proxy:80' })).toBe('http://proxy:80');
    expect(proxyFromEnvironment('https://api.example', { https_proxy: 'socks5://proxy:1080' })).toBe(
      'socks5://proxy:1080',
    );
    expect(proxyFromEnvironment('https://api.example', {})).toBeUndefined();
    expect(proxyFromEnvironment('https://api.example', { HTTPS_PROXY: '' })).toBeUndefined();
    expect(proxyFromEnvironment('nonsense', { HTTPS_PROXY: PROXY })).toBeUndefined();
  });

  it.each(['https://localhost:6443', 'https://127.0.0.1:6443', 'https://[::1]:6443', 'https://127.1.2.3'])(
    'goes straight to this machine: %s',
    (server) => {
      expect(through(server)).toBeUndefined();
    },
  );

  it.each([
    ['https://api.example', '*'],
    ['https://api.example', 'api.example'],
    ['https://api.example', 'other, example'],
    ['https://api.example', '.example'],
    ['https://api.example', '*.example'],
    ['https://API.example', 'Api.Example'],
    ['https://api.example', 'api.example:443'],
    ['https://api.example:6443', 'api.example:6443'],
    ['https://10.1.2.3:6443', '10.1.2.3'],
    ['https://10.1.2.3:6443', '10.0.0.0/8'],
    ['https://[fd00::1]:6443', 'fd00::1'],
    ['https://[fd00::1]:6443', '[fd00::1]:6443'],
    ['https://[fd00::1]:6443', 'fd00::/8'],
  ])('goes straight to %s where NO_PROXY is %s', (server, noProxy) => {
    expect(through(server, noProxy)).toBeUndefined();
  });

  it.each([
    ['https://api.example', 'ample'],
    ['https://example', '.example'],
    ['https://api.example', 'api.example:6443'],
    ['https://10.1.2.3', '10.1.2.4'],
    ['https://10.1.2.3', '11.0.0.0/8'],
    ['https://10.1.2.3', '10.0.0.0/33'],
    ['https://10.1.2.3', '10.0.0.0/x'],
    ['https://10.1.2.3', '3'],
    ['https://api.example', '10.0.0.0/8'],
    ['https://[fd00::1]', '10.0.0.0/8'],
    ['https://api.example', ' , ,'],
  ])('goes through the proxy to %s where NO_PROXY is %s', (server, noProxy) => {
    expect(through(server, noProxy)).toBe(PROXY);
  });
});
