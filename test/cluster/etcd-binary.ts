import { join } from 'node:path';
import { debianRoot } from '../vm/debian-root.ts';
import type { Progress } from '../vm/progress.ts';

const ETCD = { kind: 'etcd', title: 'etcd', suite: 'trixie', packages: ['etcd-server', 'etcd-client'] };

export interface Etcd {
  readonly server: string;
  /** `etcdctl` */
  readonly client: string;
}

/** etcd as Debian packages it (statically linked, so any host runs it), unpacked into the cache. */
export async function etcdBinaries(progress: Progress): Promise<Etcd> {
  const programs = join(await debianRoot(ETCD, progress), 'usr/bin');
  return { server: join(programs, 'etcd'), client: join(programs, 'etcdctl') };
}
