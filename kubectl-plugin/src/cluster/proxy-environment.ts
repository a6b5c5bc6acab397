import { BlockList, isIP } from 'node:net';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy that the environment names for a server, by the rules that kubectl follows (Go's package
 * golang.org/x/net/http/httpproxy): HTTPS_PROXY or HTTP_PROXY by the server's scheme, not for this machine itself, nor for
 * what NO_PROXY lists.
 *
 * @param server the address of an API server
 * @returns the address of a proxy, or undefined
 */
export function proxyFromEnvironment(server: string, environment: Environment): string | undefined {
  if (!URL.canParse(server)) return undefined;
  const { protocol, hostname, port } = new URL(server);
  const isSecure = protocol === 'https:';
  const named = variable(environment, isSecure ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  if (named === '') return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  const place = { host, port: port === '' ? (isSecure ? '443' : '80') : port };
  if (isThisMachine(host) || isExcepted(place, variable(environment, 'NO_PROXY'))) return undefined;
  return named.includes('://') ? named : `http://${named}`;
}

function variable(environment: Environment, name: string): string {
  return environment[name] ?? environment[name.toLowerCase()] ?? '';
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

interface Place {
  readonly host: string;
  readonly port: string;
}

/** `*`, addresses, networks such as `10.0.0.0/8`, and domains with all below them; each may end with a port. */
function isExcepted(place: Place, list: string): boolean {
  return list
    .toLowerCase()
    .split(',')
    .map((entry) => entry.trim())
    .some((entry) => entry !== '' && isMeant(place, entry));
}

function isMeant({ host, port }: Place, entry: string): boolean {
  if (entry === '*') return true;
  const [network = '', bits, ...more] = entry.split('/');
  if (bits !== undefined) return more.length === 0 && isInNetwork(host, network, bits);
  const [, name = entry, onlyPort] = /^\[?(.*?)\]?:(\d+)$/.exec(isIP(entry) === 6 ? '' : entry) ?? [];
  if (onlyPort !== undefined && onlyPort !== port) return false;
  if (isIP(host) !== 0 || isIP(name) !== 0) return host === name;
  const domain = name.replace(/^\*?\./, '');
  return host.endsWith(`.${domain}`) || (host === domain && domain === name);
}

function isInNetwork(host: string, network: string, bits: string): boolean {
  const version = isIP(host);
  const length = Number(bits);
  const most = version === 6 ? 128 : 32;
  if (version === 0 || isIP(network) !== version || !/^\d{1,3}$/.test(bits) || length > most) return false;
  const family = version === 6 ? 'ipv6' : 'ipv4';
  const list = new BlockList();
  list.addSubnet(network, length, family);
  return list.check(host, family);
}
