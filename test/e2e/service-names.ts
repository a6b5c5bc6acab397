import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { HOST_ADDRESS } from './cluster-network.ts';
import { dnsQuestion, dnsResponse } from './dns-message.ts';
import { CLUSTER_DOMAIN } from './node-files.ts';

const DNS_PORT = 53;

interface EndpointSlices {
  readonly items: readonly {
    readonly endpoints?: readonly {
      readonly addresses: readonly string[];
      readonly conditions?: { readonly ready?: boolean };
    }[];
  }[];
}

/**
 * Resolves the names of Services for pods, always to the pods behind them, as for a headless Service: nothing in this
 * cluster forwards a Service's own address.
 *
 * @returns what ends it
 */
export async function serveServiceNames(client: ApiClient): Promise<() => Promise<void>> {
  const socket = createSocket('udp4');
  socket.on('message', (query, sender) => {
    const question = dnsQuestion(query);
    if (question === undefined) return;
    const answer = (addresses: readonly string[] | undefined): void =>
      socket.send(dnsResponse(question, addresses), sender.port, sender.address);
    void podsBehind(client, question.name).then(answer, () => answer(undefined));
  });
  socket.bind(DNS_PORT, HOST_ADDRESS);
  await once(socket, 'listening');
  return async () => {
    socket.close();
    await once(socket, 'close');
  };
}

async function podsBehind(client: ApiClient, name: string): Promise<readonly string[] | undefined> {
  const [service, namespace, kind, ...domain] = name.split('.');
  if (service === undefined || namespace === undefined || kind !== 'svc') return undefined;
  if (domain.join('.') !== CLUSTER_DOMAIN) return undefined;
  const { items } = (await client.request({
    path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
    query: { labelSelector: `kubernetes.io/service-name=${service}` },
  })) as EndpointSlices;
  if (items.length === 0) return undefined;
  const endpoints = items.flatMap((slice) => slice.endpoints ?? []);
  return endpoints
    .filter(({ conditions }) => conditions?.ready !== false)
    .flatMap(({ addresses }) => addresses);
}
