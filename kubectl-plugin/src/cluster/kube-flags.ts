/** What kubectl's own flags say, as every command takes them. Absent ones were not given. */
export interface KubeFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly cluster?: string;
  readonly user?: string;
  readonly server?: string;
  readonly token?: string;
  readonly username?: string;
  readonly password?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
  readonly asUid?: string;
  readonly asUserExtra?: readonly string[];
  readonly certificateAuthority?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  readonly namespace?: string;
  readonly requestTimeout?: string;
  readonly verbosity?: number;
}

/** A flag as the command line takes it and the help shows it. */
export interface FlagSpec {
  /** As commander reads it: `-n, --namespace <name>`. */
  readonly flags: string;
  readonly help: string;
  /** May be given more than once. */
  readonly repeated?: boolean;
  /** What completes its value. */
  readonly completes?: 'namespaces' | 'contexts' | 'clusters' | 'users' | 'files' | readonly string[];
}

/** kubectl's configuration flags, in its order. Those without an effect here are taken so that scripts work. */
export const KUBE_FLAGS: readonly FlagSpec[] = [
  {
    flags: '-n, --namespace <name>',
    help: "the namespace, instead of the context's",
    completes: 'namespaces',
  },
  { flags: '--kubeconfig <file>', help: 'the kubeconfig file to use', completes: 'files' },
  { flags: '--context <name>', help: 'the kubeconfig context to use', completes: 'contexts' },
  { flags: '--cluster <name>', help: 'the kubeconfig cluster to use', completes: 'clusters' },
  { flags: '--user <name>', help: 'the kubeconfig user to use', completes: 'users' },
  { flags: '-s, --server <url>', help: 'address of the API server' },
  { flags: '--token <token>', help: 'bearer token' },
  { flags: '--username <name>', help: 'user name for basic authentication' },
  { flags: '--password <password>', help: 'password for basic authentication' },
  { flags: '--as <user>', help: 'the user to act as' },
  { flags: '--as-group <group>', help: 'a group to act as; may be given more than once', repeated: true },
  { flags: '--as-uid <uid>', help: 'the uid to act as' },
  {
    flags: '--as-user-extra <key=value>',
    help: 'a further attribute to act with; may be given more than once',
    repeated: true,
  },
  {
    flags: '--certificate-authority <file>',
    help: "the authority of the server's certificate",
    completes: 'files',
  },
  { flags: '--client-certificate <file>', help: 'the client certificate', completes: 'files' },
  { flags: '--client-key <file>', help: 'its key', completes: 'files' },
  { flags: '--insecure-skip-tls-verify', help: "do not check the server's certificate" },
  { flags: '--tls-server-name <name>', help: "the name to expect in the server's certificate" },
  { flags: '--proxy-url <url>', help: 'the proxy to go through' },
  { flags: '--request-timeout <time>', help: 'how long one request may take, such as 5s or 1m; 0 for 30s' },
  { flags: '--cache-dir <directory>', help: 'taken, and without effect: nothing is cached' },
  { flags: '--disable-compression', help: 'taken, and without effect: answers are not compressed' },
  { flags: '--verbosity <level>', help: 'as kubectl -v: 6 tells every request on standard error' },
];
