import { join } from 'node:path';
import type { ClusterCredentials } from './cluster-credentials.ts';

/** The command line of an etcd that serves nobody but one API server and keeps nothing safe. */
export function etcdCommand(program: string, directory: string, url: string, peerPort: number): string[] {
  const peer = `http://127.0.0.1:${peerPort}`;
  return [
    program,
    `--data-dir=${join(directory, 'etcd')}`,
    '--unsafe-no-fsync',
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ];
}

/** The command line of kube-apiserver on a port of 127.0.0.1, with RBAC. */
export function apiServerCommand(
  program: string,
  { file }: ClusterCredentials,
  etcdUrl: string,
  port: number,
): string[] {
  return [
    program,
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--authorization-mode=Node,RBAC',
    // The endpoints of the `kubernetes` service may not be a loopback address, and nothing here needs them.
    '--endpoint-reconciler-type=none',
    `--client-ca-file=${file('ca.crt')}`,
    `--tls-cert-file=${file('server.crt')}`,
    `--tls-private-key-file=${file('server.key')}`,
    `--service-account-key-file=${file('sa.pub')}`,
    `--service-account-signing-key-file=${file('sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--enable-aggregator-routing=false',
  ];
}
